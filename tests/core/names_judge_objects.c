// SPDX-License-Identifier: GPL-2.0-only
/* What recovery makes of attributes, and of files that were created without a name. */
#include "names_judged.h"

/* Attributes of a file: a later state by the counter has the change; by ctime if the counter is the same. */
static void attributes_of_files(void)
{
	static const enum nl_kind kinds[] = { NL_SETATTR, NL_XATTR_SET, NL_XATTR_REMOVE, NL_IFLAGS };

	for (u32 i = 0; i < 4; i++) {
		struct nl_change change = names_change(kinds[i], 3);
		u64 place;

		start();
		append(link_in(1, 10, 100, 20));
		change.has &= ~NL_HAS(NEEDS);
		change.object = names_id(0, 3);
		change.attr.mode = 0100644;
		change.self = (struct nl_count){ 7, 300 };
		place = append(change);
		EXPECT(gives_attribute(place, 6, 300, false) && gives_attribute(place, 7, 300, false));
		EXPECT(gives_attribute(place, 8, 300, true) && gives_attribute(place, 100, 299, true));
		EXPECT(gives_attribute(place, 7, 301, true) && gives_attribute(place, 7, 299, false));
		EXPECT(gives_attribute(place, 6, 301, false));
		there[3].err = -ENOENT;
		EXPECT(gives_attribute(place, 1, 1, true));
		there[3].err = -EIO;
		EXPECT(run() == -EIO);
		change.attr.mode = 0040755;	/* a directory: the counter from before it decides */
		start();
		place = append(change);
		EXPECT(gives_attribute(place, 7, 300, false) && gives_attribute(place, 8, 300, true));
		change.self.before = 0;		/* which didn't rise */
		start();
		place = append(change);
		EXPECT(gives_attribute(place, 8, 300, false) && gives_attribute(place, 8, 301, true));
	}
}

/* Attributes of a file without a name, between its creation and its first name. */
static void attributes_of_nameless_file(void)
{
	struct nl_change change = names_change(NL_TMPFILE, 3), attr = names_change(NL_SETATTR, 3);
	struct nl_change named = link_in(1, 10, 100, 3);
	u64 place;

	start();
	change.object = names_id(0, 3);
	attr.has = NL_HAS(OBJECT) | NL_HAS(ATTR) | NL_HAS(SELF);
	attr.attr.mode = 0100644;
	attr.self = (struct nl_count){ 7, 90 };
	attr.object = names_id(append(change), 3);
	place = append(attr);
	named.object = attr.object;
	append(named);
	there[3].forbidden = true;	/* another file may have its handle */
	EXPECT(gives(10, 1, NL_EXPLAINED) && !stored(place));
	there[3].forbidden = false;
	there[3].counter = 7;
	there[3].ctime = 100;
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(place));
	there[3].ctime = 90;
	EXPECT(gives(11, 100, NL_EXPLAINED) && !stored(place));
}

/* A file without a name is on storage if its first name is. */
static void nameless_file(void)
{
	struct nl_change change = names_change(NL_TMPFILE, 20);
	struct nl_change named = link_in(1, 10, 100, 20);
	u64 birth, place;

	start();
	birth = append(change);
	named.object = change.object;
	named.object.birth = birth;
	place = append(named);
	EXPECT(gives(10, 1, NL_EXPLAINED) && !stored(birth) && !stored(place));
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(birth) && stored(place));
	named.object.birth = birth + 1;
	named.dir.count.before = 11;
	append(named);
	EXPECT(gives(10, 1, NL_CONTRADICTION));
}

/* A file without a name whose first name left no record, or one that was lost. */
static void nameless_file_without_link(void)
{
	struct nl_change change = names_change(NL_TMPFILE, 3), named = link_in(1, 10, 100, 3);
	u64 birth;

	start();
	change.object = names_id(0, 3);
	birth = append(change);
	EXPECT(gives(10, 1, NL_EXPLAINED) && stored(birth));
	there[3].err = -ENOENT;
	EXPECT(gives(10, 1, NL_EXPLAINED) && !stored(birth));
	there[3].forbidden = true;	/* another file may have its handle */
	named.object = names_id(birth, 3);
	append(named);
	EXPECT(gives(10, 1, NL_EXPLAINED) && !stored(birth));

	start();
	change.object.btime = 0;
	birth = append(change);
	EXPECT(gives(10, 1, NL_EXPLAINED) && !stored(birth));
}

/* A name is there, and the creation of its object is not. */
static void object_without_creation(void)
{
	struct nl_change made = link_in(1, 10, 100, 3), named = link_in(2, 5, 100, 3);
	struct nl_place place;

	start();
	made.kind = NL_CREATE;
	made.has |= NL_HAS(ATTR);
	made.object = names_id(nl_next(&nl), 30);
	named.object = names_id(0, 30);
	EXPECT(!nl_reserve(&nl, &place, 9));	/* so that both have begun at once */
	append(made);
	nl_take(&nl, &place, nl_change_lines(&named), false);
	names_write(&nl, &place, &named);
	there[2].counter = 6;
	there[2].ctime = 100;
	EXPECT(gives(10, 1, NL_NO_CUT) && gives(11, 100, NL_EXPLAINED));
}

void names_judge_objects_tests(void)
{
	attributes_of_files();
	attributes_of_nameless_file();
	nameless_file();
	nameless_file_without_link();
	object_without_creation();
}

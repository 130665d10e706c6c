// SPDX-License-Identifier: GPL-2.0-only
/* What recovery makes of single states of storage: explained or not, and why. */
#include "names_judged.h"

/* Directory 1 has changed twice: its counter was 10, then 12. */
static void counters(void)
{
	u64 first, second;

	start();
	first = append(link_in(1, 10, 100, 20));
	second = append(link_in(1, 12, 200, 21));
	EXPECT(gives(10, 77, NL_EXPLAINED) && !stored(first) && !stored(second));
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(first) && !stored(second));
	EXPECT(gives(12, 100, NL_EXPLAINED) && stored(first) && !stored(second));
	EXPECT(gives(13, 200, NL_EXPLAINED) && stored(first) && stored(second));
	EXPECT(judge.end == nl_next(&nl));
	EXPECT(gives(9, 100, NL_ROLLED_BACK) && judge.place == first);
	EXPECT(judge.has_dir && judge.dir.btime == 1000001);
	EXPECT(gives(11, 101, NL_CHANGED) && judge.place == second);
	EXPECT(gives(12, 200, NL_CHANGED));
	EXPECT(gives(13, 201, NL_CHANGED));	/* there is no heartbeat */
}

/* The log begins with the second of two changes of directory 1 that were made within one tick. */
static void read_since_a_tick(void)
{
	struct nl_change change = link_in(1, 10, 100, 20);
	u64 place;

	start();
	change.flags = NL_SAME_CTIME(NL_HAS(DIR));
	place = append(change);
	there[1].err = NL_SEEN_READ;
	EXPECT(gives(10, 100, NL_EXPLAINED) && !stored(place));
	EXPECT(gives(11, 100, NL_EXPLAINED) && !stored(place));
	EXPECT(gives(12, 100, NL_EXPLAINED) && stored(place));
	EXPECT(gives(12, 77, NL_EXPLAINED) && !stored(place));
	there[1].err = 0;
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(place));
}

/* File 3 gets another mode, and ctime 300. @after: its counter then. Returns the record's place. */
static u64 append_new_mode(u64 after, u32 flags)
{
	struct nl_change change = names_change(NL_SETATTR, 3);

	change.has &= ~NL_HAS(NEEDS);
	change.object = names_id(0, 3);
	change.attr.mode = 0100644;
	change.self = (struct nl_count){ after, 300 };
	change.flags = flags;
	return append(change);
}

/* Access times may have raised counters since the crash: of directory 1, and of a file; most often by one. */
static void read_since(void)
{
	u64 first, second, third, fourth, file;

	start();
	first = append(link_in(1, 10, 100, 20));
	second = append(link_in(1, 11, 200, 21));
	third = append(link_in(1, 12, 200, 22));
	there[1].err = NL_SEEN_READ;
	EXPECT(gives(10, 77, NL_EXPLAINED) && !stored(first) && !stored(second));
	EXPECT(gives(11, 77, NL_EXPLAINED) && !stored(first) && !stored(second));
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(first) && !stored(second));
	EXPECT(gives(12, 100, NL_EXPLAINED) && stored(first) && !stored(second));
	EXPECT(gives(12, 200, NL_EXPLAINED) && stored(second) && !stored(third));
	EXPECT(gives(13, 200, NL_EXPLAINED) && stored(second) && !stored(third));
	EXPECT(gives(14, 200, NL_EXPLAINED) && stored(second) && stored(third));
	EXPECT(gives(9, 77, NL_ROLLED_BACK));
	EXPECT(gives(12, 77, NL_EXPLAINED) && !stored(first));
	EXPECT(gives(13, 100, NL_EXPLAINED) && stored(first) && !stored(second));
	EXPECT(gives(20, 100, NL_EXPLAINED) && stored(first) && !stored(second) && !stored(third));
	fourth = append(link_in(1, 13, 150, 23));	/* the clock was set back */
	EXPECT(gives(20, 150, NL_EXPLAINED) && stored(third) && stored(fourth));
	EXPECT(gives(20, 100, NL_EXPLAINED) && stored(first) && !stored(second) && !stored(fourth));

	start();
	file = append_new_mode(7, 0);
	there[3].err = NL_SEEN_READ;
	EXPECT(gives_attribute(file, 8, 300, false) && gives_attribute(file, 9, 300, true));
	EXPECT(gives_attribute(file, 9, 200, false) && gives_attribute(file, 8, 200, false));
}

/* Changes whose records were lost: as young as the heartbeat allows, and no younger. */
static void lost_tail(void)
{
	start();
	append(link_in(1, 10, 100, 20));
	nl_beat(&nl, 150, 250, 0);
	EXPECT(gives(10011, 250, NL_EXPLAINED) && gives(10011, 101, NL_EXPLAINED));
	EXPECT(gives(10011, 251, NL_CHANGED) && gives(11, 99, NL_CHANGED));
	nl_beat(&nl, 250, 350, 0);
	EXPECT(gives(10011, 251, NL_EXPLAINED));
	append(link_in(1, 11, 300, 20));
	EXPECT(gives(11, 301, NL_CHANGED));
}

/* The same after the clock was set back. Without a heartbeat that says so, storage can't be explained. */
static void clock_set_back(void)
{
	u64 place;

	start();
	append(link_in(1, 10, 100, 20));
	nl_beat(&nl, 50, 150, 0);
	EXPECT(gives(12, 60, NL_CHANGED));
	nl_beat(&nl, 60, 150, 50);
	EXPECT(gives(12, 50, NL_EXPLAINED) && gives(12, 90, NL_EXPLAINED));
	EXPECT(gives(12, 49, NL_CHANGED) && gives(12, 151, NL_CHANGED));
	place = append(link_in(1, 11, 70, 21));
	EXPECT(gives(11, 60, NL_CHANGED));	/* storage lacks the last change, so it has no later one */
	EXPECT(gives(11, 100, NL_EXPLAINED) && !stored(place));
	EXPECT(gives(12, 70, NL_EXPLAINED) && stored(place) && gives(13, 60, NL_EXPLAINED) && stored(place));
}

/* Directory 1 was read since the crash while the clock was behind. */
static void read_before(void)
{
	u64 first, second;

	start();
	first = append(link_in(1, 10, 100, 20));
	second = append(link_in(1, 11, 100, 21));
	nl_beat(&nl, 100, 150, 0);
	there[1].err = NL_SEEN_READ_BEFORE;
	EXPECT(gives(10, 77, NL_EXPLAINED) && !stored(first));
	EXPECT(gives(11, 77, NL_EXPLAINED) && !stored(first) && !stored(second));
	EXPECT(gives(11, 200, NL_EXPLAINED) && !stored(first));		/* the clock was ahead before */
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(first) && !stored(second));
	EXPECT(gives(12, 100, NL_EXPLAINED) && stored(first) && stored(second));
	EXPECT(gives(12, 77, NL_CHANGED) && gives(13, 151, NL_CHANGED));
	append(link_in(1, 12, 120, 22));
	EXPECT(gives(13, 100, NL_EXPLAINED) && stored(second) && gives(13, 120, NL_EXPLAINED));
	EXPECT(gives(13, 110, NL_CHANGED));
}

/* A file that was copied with its old access time looks as if it was read before. It wasn't. */
static void file_read_before(void)
{
	u64 file;

	start();
	file = append_new_mode(7, 0);
	there[3].err = NL_SEEN_READ_BEFORE;
	EXPECT(gives_attribute(file, 8, 300, true) && gives_attribute(file, 7, 300, false));
	EXPECT(gives_attribute(file, 7, 299, false) && gives_attribute(file, 7, 301, true));
}

/*
 * Directory 1 was read since the crash, perhaps more than once. A counter that is higher by two, and the time
 * of two changes, may come from the second change and a raise, or from two raises. To take the change for
 * stored would lose it, to make it again may put an empty file in the place of one that storage has.
 */
static void read_often(void)
{
	struct nl_change change = link_in(1, 10, 100, 20);
	u64 first, second, third;

	start();
	change.flags = NL_SAME_CTIME(NL_HAS(DIR));
	first = append(change);
	there[1].err = NL_SEEN_READ_OFTEN;
	EXPECT(gives(12, 100, NL_UNCLEAR) && judge.place == first && judge.has_dir);
	EXPECT(gives(13, 100, NL_UNCLEAR));
	EXPECT(gives(11, 100, NL_EXPLAINED) && !stored(first) && gives(10, 100, NL_EXPLAINED));
	EXPECT(gives(12, 77, NL_EXPLAINED) && !stored(first));

	start();
	first = append(link_in(1, 10, 100, 20));
	second = append(link_in(1, 11, 100, 21));
	third = append(link_in(1, 12, 200, 22));
	there[1].err = NL_SEEN_READ_OFTEN;
	EXPECT(gives(13, 100, NL_UNCLEAR) && judge.place == second);
	EXPECT(gives(11, 77, NL_EXPLAINED) && !stored(first));
	EXPECT(gives(12, 77, NL_EXPLAINED) && !stored(first));
	EXPECT(gives(12, 100, NL_EXPLAINED) && stored(first) && !stored(second));
	EXPECT(gives(14, 200, NL_EXPLAINED) && stored(second) && stored(third));
}

/* Directory 1 changes twice within one tick, by a step each. Reads don't get over it. */
static void steps(void)
{
	static const enum nl_seen seen[] = {
		NL_SEEN_UNREAD, NL_SEEN_READ, NL_SEEN_READ_OFTEN, NL_SEEN_READ_BEFORE,
	};
	const u64 first_before = 10 + NL_STEP, second_before = first_before + 1 + NL_STEP;

	for (u32 i = 0; i < 4; i++) {
		struct nl_change change = link_in(1, first_before, 100, 20);
		u64 first, second;

		start();
		change.flags = NL_STEPPED | NL_SAME_CTIME(NL_HAS(DIR));
		first = append(change);
		change.dir.count.before = second_before;
		second = append(change);
		nl_beat(&nl, 100, 150, 0);
		there[1].err = seen[i];
		EXPECT(gives(9, 100, NL_ROLLED_BACK) && judge.place == first);
		EXPECT(gives(10, 100, NL_EXPLAINED) && !stored(first) && !stored(second));
		EXPECT(gives(11, 100, NL_EXPLAINED) && !stored(first) && !stored(second));
		EXPECT(gives(9 + NL_STEP, 100, NL_EXPLAINED) && !stored(first));
		EXPECT(gives(first_before, 100, NL_EXPLAINED) && !stored(first));
		EXPECT(gives(first_before + 1, 100, NL_EXPLAINED) && stored(first) && !stored(second));
		EXPECT(gives(first_before + 2, 100, NL_EXPLAINED) && stored(first) && !stored(second));
		EXPECT(gives(second_before, 100, NL_EXPLAINED) && stored(first) && !stored(second));
		EXPECT(gives(second_before + 1, 100, NL_EXPLAINED) && stored(second));
		EXPECT(gives(second_before + 9, 130, NL_EXPLAINED) && stored(second));
		/* Another program has changed it, with or without the first change. */
		EXPECT(gives(11, 200, NL_CHANGED) && judge.place == first && judge.has_dir);
		EXPECT(gives(12, 99, NL_CHANGED) && gives(first_before + 2, 99, NL_CHANGED));
		EXPECT(gives(first_before + 2, 130, NL_CHANGED) && gives(second_before + 2, 200, NL_CHANGED));
	}
}

/* The same, and the record doesn't know which ctime the directory had before. */
static void steps_of_several_ticks(void)
{
	struct nl_change change = link_in(1, 10 + NL_STEP, 100, 20);
	u64 first;

	start();
	change.flags = NL_STEPPED;
	first = append(change);
	nl_beat(&nl, 100, 150, 0);
	EXPECT(gives(10, 77, NL_EXPLAINED) && !stored(first));
	/* It was written between step and change. */
	EXPECT(gives(10 + NL_STEP, 77, NL_EXPLAINED) && !stored(first));
	EXPECT(gives(11, 77, NL_CHANGED) && gives(11, 200, NL_CHANGED) && gives(12, 100, NL_CHANGED));
	EXPECT(gives(11 + NL_STEP, 77, NL_CHANGED));
	EXPECT(gives(11 + NL_STEP, 100, NL_EXPLAINED) && stored(first));
	there[1].err = NL_SEEN_READ_BEFORE;
	EXPECT(gives(11, 77, NL_EXPLAINED) && !stored(first));
	EXPECT(gives(19, 77, NL_EXPLAINED) && !stored(first));
	EXPECT(gives(19 + NL_STEP, 100, NL_EXPLAINED) && stored(first));
	EXPECT(gives(11 + NL_STEP, 120, NL_EXPLAINED) && stored(first));
}

/* A file's mode changes, with a step. However often the file was read since, its counter tells. */
static void steps_of_files(void)
{
	static const enum nl_seen seen[] = {
		NL_SEEN_UNREAD, NL_SEEN_READ, NL_SEEN_READ_OFTEN, NL_SEEN_READ_BEFORE,
	};
	const u64 after = 7 + NL_STEP;

	for (u32 i = 0; i < 4; i++) {
		u64 file;

		start();
		file = append_new_mode(after, NL_STEPPED);
		there[3].err = seen[i];
		EXPECT(gives_attribute(file, 6, 299, false) && gives_attribute(file, 6, 300, false));
		EXPECT(gives_attribute(file, 9, 299, false) && gives_attribute(file, 9, 300, false));
		EXPECT(gives_attribute(file, 9, 400, false) && gives_attribute(file, after - 1, 300, false));
		EXPECT(gives_attribute(file, after, 300, false) && gives_attribute(file, after, 400, false));
		EXPECT(gives_attribute(file, after + 1, 300, true));
		EXPECT(gives_attribute(file, after + 1, 99, true));
	}
}

/* Two directories: the second change is there, the first is not. */
static void one_cut(void)
{
	struct nl_change a = link_in(1, 10, 100, 20), b = link_in(2, 5, 101, 21);
	struct nl_place first, second;

	start();
	append(a);
	append(b);
	there[2].counter = 6;
	there[2].ctime = 101;
	EXPECT(gives(10, 1, NL_NO_CUT) && gives(11, 100, NL_EXPLAINED));

	/* They were made at the same time, so the journal may have had the second before the first. */
	start();
	EXPECT(!nl_reserve(&nl, &first, 9) && !nl_reserve(&nl, &second, 9));
	nl_take(&nl, &first, nl_change_lines(&a), false);
	nl_take(&nl, &second, nl_change_lines(&b), false);
	names_write(&nl, &first, &a);
	names_write(&nl, &second, &b);
	there[2].counter = 6;
	there[2].ctime = 101;
	EXPECT(gives(10, 1, NL_EXPLAINED) && !stored(first.start) && stored(second.start));
}

/* One change of two directories is on storage in both, or in none. */
static void torn_change(void)
{
	struct nl_change change = link_in(1, 10, 100, 20);

	start();
	change.kind = NL_RENAME;
	change.has |= NL_HAS(DIR2) | NL_HAS(NAME2);
	change.dir2 = (struct nl_dir){ { 5, 100 }, names_id(0, 2) };
	append(change);
	there[2].counter = 5;
	EXPECT(gives(10, 1, NL_EXPLAINED) && gives(11, 100, NL_NO_CUT));
	there[2].counter = 6;
	there[2].ctime = 100;
	EXPECT(gives(11, 100, NL_EXPLAINED) && gives(10, 1, NL_NO_CUT));
	there[2].err = -ENOENT;	/* removed later */
	EXPECT(gives(11, 100, NL_EXPLAINED) && gives(10, 1, NL_NO_CUT));
}

static void opaque_records(void)
{
	struct nl_change change = link_in(1, 10, 100, 20);

	start();
	change.kind = NL_OPAQUE;
	change.has = NL_HAS(DIR);
	append(change);
	EXPECT(gives(10, 1, NL_EXPLAINED) && gives(11, 100, NL_EXPLAINED));
	EXPECT(!nl_commit(&nl, nl_next(&nl)));
	EXPECT(gives(10, 1, NL_ROLLED_BACK) && gives(11, 100, NL_EXPLAINED));
}

/* Directory 3 is made in directory 1, and has a file. Its records may know no birth. */
static void new_directory(bool known)
{
	struct nl_change made = link_in(1, 10, 100, 3), inside = link_in(3, 1, 110, 21);
	u64 birth, place;

	start();
	made.kind = NL_CREATE;
	made.has |= NL_HAS(ATTR) | NL_HAS(SELF);
	made.object = names_id(nl_next(&nl), 3);
	made.self = (struct nl_count){ 0, 100 };
	birth = append(made);
	inside.dir.id.birth = known ? birth : 0;
	place = append(inside);
	there[3].forbidden = true;
	EXPECT(gives(10, 1, NL_EXPLAINED) && !stored(birth) && !stored(place));
	there[3].forbidden = false;
	there[3].counter = 1;
	there[3].ctime = 100;
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(birth) && !stored(place));
	there[3].ctime = 101;
	EXPECT(gives(11, 100, NL_CHANGED));
	there[3].counter = 2;
	there[3].ctime = 110;
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(place));
	there[3].err = -ENOENT;
	EXPECT(gives(11, 100, NL_EXPLAINED) && stored(place));
	append(made);	/* it can't be made twice */
	EXPECT(gives(10, 1, NL_CONTRADICTION));
}

/*
 * Directory 2 changes, moves within directory 1, and changes again. The move raises its ctime and not its
 * counter. A file's counter says nothing of directories.
 */
static void counters_that_say_nothing(void)
{
	struct nl_change moved = link_in(1, 10, 200, 2), attr = names_change(NL_SETATTR, 3);
	u64 first, move, last, file;

	start();
	first = append(link_in(2, 5, 100, 21));
	moved.kind = NL_RENAME;
	moved.has |= NL_HAS(NAME2) | NL_HAS(SELF);
	moved.name2 = names_text("there");
	moved.object = names_id(0, 2);
	moved.self = (struct nl_count){ 0, 200 };
	move = append(moved);
	last = append(link_in(2, 6, 300, 22));
	attr.has = NL_HAS(OBJECT) | NL_HAS(ATTR) | NL_HAS(SELF);
	attr.object = names_id(0, 3);
	attr.self = (struct nl_count){ 7, 300 };
	file = append(attr);
	there[3].ctime = 1;
	there[3].counter = 1;
	there[2].counter = 6;
	there[2].ctime = 100;
	EXPECT(gives(10, 1, NL_EXPLAINED) && stored(first) && !stored(move) && !stored(last));
	there[2].ctime = 200;
	EXPECT(gives(11, 200, NL_EXPLAINED) && stored(first) && stored(move) && !stored(last));
	there[2].ctime = 201;
	EXPECT(gives(11, 200, NL_CHANGED));
	there[2].ctime = 300;
	there[2].counter = 7;
	EXPECT(gives(11, 200, NL_EXPLAINED) && stored(last) && !stored(file));
}

static void errors(void)
{
	start();
	append(link_in(1, 10, 100, 20));
	append(link_in(2, 10, 100, 20));
	there[1].err = -EIO;
	EXPECT(run() == -EIO);
	there[1].err = 0;
	max_nodes = 1;
	EXPECT(run() == -ENOSPC);
	max_nodes = 32;
	EXPECT(!nl_commit(&nl, nl_next(&nl)));
	nl_line(&nl, nl.trim)[40] ^= 1;
	EXPECT(run() == -EUCLEAN && judge.damage.kind == NL_BAD_RECORD);
	nl_line(&nl, nl.trim)[40] ^= 1;
	there[1].counter = 10;
	there[2].counter = 10;
	EXPECT(!run() && !nl_decide(&nl, bits, judge.end) && run() == -EEXIST);
	EXPECT(nl_on_storage(&nl, nl.trim) == 0 && nl_on_storage(&nl, judge.end) == -ENOENT);
}

void names_judge_tests(void)
{
	counters();
	read_since();
	read_since_a_tick();
	read_before();
	file_read_before();
	read_often();
	steps();
	steps_of_several_ticks();
	steps_of_files();
	lost_tail();
	clock_set_back();
	one_cut();
	torn_change();
	opaque_records();
	new_directory(true);
	new_directory(false);
	counters_that_say_nothing();
	names_judge_objects_tests();
	errors();
}

// SPDX-License-Identifier: GPL-2.0-only
/* The name log without power cuts: what is written is read, and the rules of names.h hold. */
#include "names/layout.h"
#include "names_log.h"
#include "test.h"

#include <stdlib.h>

static _Alignas(4096) u8 region[NAMES_SIZE];
static struct nl nl;
static struct nl_record record;

static void start(void)
{
	names_forget();
	memset(region, 0, sizeof(region));
	names_format(region, 1);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0));
	EXPECT(!nl_empty(&nl));
}

static bool same_text(const struct nl_text *a, const struct nl_text *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

static bool same_fixed(const struct nl_change *a, const struct nl_change *b)
{
	u32 has = a->has;

	return a->kind == b->kind && a->flags == b->flags && has == b->has &&
	       (!(has & NL_HAS(DIR)) || !memcmp(&a->dir, &b->dir, sizeof(a->dir))) &&
	       (!(has & NL_HAS(DIR2)) || !memcmp(&a->dir2, &b->dir2, sizeof(a->dir2))) &&
	       (!(has & NL_HAS(OBJECT)) || !memcmp(&a->object, &b->object, sizeof(a->object))) &&
	       (!(has & NL_HAS(OBJECT2)) || !memcmp(&a->object2, &b->object2, sizeof(a->object2))) &&
	       (!(has & NL_HAS(SELF)) || !memcmp(&a->self, &b->self, sizeof(a->self))) &&
	       (!(has & NL_HAS(SELF2)) || !memcmp(&a->self2, &b->self2, sizeof(a->self2))) &&
	       (!(has & NL_HAS(NEEDS)) || !memcmp(&a->needs, &b->needs, sizeof(a->needs))) &&
	       (!(has & NL_HAS(ATTR)) || !memcmp(&a->attr, &b->attr, sizeof(a->attr)));
}

static bool same_change(const struct nl_change *a, const struct nl_change *b)
{
	u32 has = a->has;

	return same_fixed(a, b) &&
	       (!(has & NL_HAS(NAME)) || same_text(&a->name, &b->name)) &&
	       (!(has & NL_HAS(NAME2)) || same_text(&a->name2, &b->name2)) &&
	       (!(has & NL_HAS(TARGET)) || same_text(&a->target, &b->target)) &&
	       (!(has & NL_HAS(XATTR)) || same_text(&a->xattr, &b->xattr)) &&
	       (!(has & NL_HAS(VALUE)) || same_text(&a->value, &b->value));
}

/* Every kind of record, with each set of fields that it may have. */
static void what_is_written_is_read(void)
{
	for (u32 kind = 0; kind <= NL_OPAQUE + 1; kind++) {
		for (u32 has = 0; has < 1u << NL_NR_FIELDS; has += 2) {
			struct nl_change change = names_change(NL_RENAME, has % 97);
			u64 before;

			change.kind = kind;
			change.has = has;
			before = nl_next(&nl);
			if (!nl_change_allowed(&change)) {
				if (nl_change_lines(&change) != -EINVAL)
					EXPECT(!"a change that is not allowed has a size");
				continue;
			}
			if (!names_append(&nl, &change) || nl_read(&nl, before, &record) ||
			    !same_change(&change, &record.change))
				EXPECT(!"a record differs from what was written");
			if (nl_trim(&nl, nl_next(&nl)))
				EXPECT(!"the log can't be trimmed");
		}
	}
}

static void limits(void)
{
	static u8 bytes[NL_TARGET_MAX + 1];
	struct nl_change change = names_change(NL_CREATE, 1);
	struct nl_place place;

	memset(bytes, 'x', sizeof(bytes));
	change.target = (struct nl_text){ bytes, NL_TARGET_MAX };
	change.name = (struct nl_text){ bytes, NL_NAME_MAX };
	change.object.len = NL_HANDLE_MAX;
	change.dir.id.len = NL_HANDLE_MAX;
	EXPECT(nl_change_lines(&change) > 0 && names_append(&nl, &change));
	EXPECT(!nl_read(&nl, nl.oldest ? 0 : nl_next(&nl) - nl_change_lines(&change), &record) &&
	       same_change(&change, &record.change));
	change.target.len++;
	EXPECT(nl_change_lines(&change) == -E2BIG && !names_append(&nl, &change));
	change.target.len--;
	change.name.len++;
	EXPECT(nl_change_lines(&change) == -E2BIG);
	change = names_change(NL_XATTR_SET, 1);
	change.value.len = NL_VALUE_MAX;
	EXPECT(nl_change_lines(&change) > 0 && names_append(&nl, &change));
	change.value.len++;
	EXPECT(nl_change_lines(&change) == -E2BIG);
	change = names_change(NL_LINK, 1);
	change.object.len = 0;
	EXPECT(nl_change_lines(&change) == -EINVAL);
	EXPECT(nl_reserve(&nl, &place, NL_MAX_LINES + 1) == -E2BIG && !nl_reserve(&nl, &place, NL_MAX_LINES));
	nl_cancel(&nl, &place);
	nl_cancel(&nl, &place);
	EXPECT(!nl.reserved);
}

/* Names that no directory has are not read, whatever the checksum says. */
static void impossible_names(void)
{
	static const char *const names[] = { "", ".", "..", "a/b" };

	for (u32 i = 0; i < 4; i++) {
		struct nl_change change = names_change(NL_LINK, 1);
		struct nl_place place;

		change.name = names_text(names[i]);
		EXPECT(!nl_reserve(&nl, &place, nl_change_lines(&change)));
		nl_take(&nl, &place, place.reserved, false);
		nl_write(&nl, &place, &change);
		nl_done(&nl, &place);
		EXPECT(nl_read(&nl, place.start, &record) == -EUCLEAN);
	}
}

/* A counter that is lower than a step was not raised by one, and some kinds have no counters. */
static void impossible_steps(void)
{
	struct nl_change change = names_change(NL_RENAME, 1), nameless = names_change(NL_TMPFILE, 1);
	u64 *counters[] = { &change.dir.count.before, &change.dir2.count.before, &change.self.before,
			    &change.self2.before };

	change.flags = NL_STEPPED;
	for (u32 i = 0; i < 4; i++)
		*counters[i] = NL_STEP;
	EXPECT(nl_change_lines(&change) > 0);
	for (u32 i = 0; i < 4; i++) {
		*counters[i] = NL_STEP - 1;
		EXPECT(nl_change_lines(&change) == -EINVAL);
		*counters[i] = i < 2 ? NL_STEP : 0;	/* it says nothing */
		EXPECT(nl_change_lines(&change) > 0);
	}
	nameless.flags = NL_STEPPED;
	EXPECT(nl_change_lines(&nameless) == -EINVAL);
}

/* Space is promised once, and comes back by cancelling and by trimming. */
static void space(void)
{
	struct nl_change change = names_change(NL_LINK, 1);
	u32 lines = nl_change_lines(&change), n = 0;
	struct nl_place held, place;
	u64 last = 0, end;

	start();
	EXPECT(!nl_reserve(&nl, &held, NL_MAX_LINES));
	while ((end = names_append(&nl, &change))) {
		last = end;
		n++;
	}
	EXPECT(n == (nl.nr_lines - NL_MAX_LINES) / lines);
	EXPECT(nl_reserve(&nl, &place, lines) == -ENOSPC);
	nl_cancel(&nl, &held);
	EXPECT(!nl_reserve(&nl, &place, lines));
	nl_cancel(&nl, &place);
	EXPECT(!nl_commit(&nl, last) && !nl_trim(&nl, last));
	for (n = 0; names_append(&nl, &change); n++)
		;
	EXPECT(n == nl.nr_lines / lines);
	EXPECT(!names_damage(&nl));
}

/* Records become whole in any order; commits wait for the oldest. */
static void order(void)
{
	struct nl_change change = names_change(NL_LINK, 1);
	u32 lines = nl_change_lines(&change);
	struct nl_place place[3];

	start();
	for (u32 i = 0; i < 3; i++)
		EXPECT(!nl_reserve(&nl, &place[i], lines + i));
	EXPECT(place[2].began == place[0].began);
	for (u32 i = 0; i < 3; i++)
		nl_take(&nl, &place[i], lines, false);
	EXPECT(place[1].start == place[0].end && !nl.reserved);
	names_write(&nl, &place[1], &change);
	EXPECT(nl_commit(&nl, place[0].end) == -EAGAIN && nl_trim(&nl, place[1].end) == -EAGAIN);
	names_write(&nl, &place[2], &change);
	EXPECT(nl.whole == place[0].start);
	names_write(&nl, &place[0], &change);
	EXPECT(nl.whole == nl_next(&nl) && !nl_commit(&nl, place[2].end) && nl.commit == place[2].end);
	EXPECT(!nl_commit(&nl, place[0].end) && nl.commit == place[2].end);
}

static void opaque(void)
{
	struct nl_change change = names_change(NL_LINK, 1);
	u64 before, first, middle, second, synced;

	start();
	before = names_append(&nl, &change);
	first = names_append_opaque(&nl, 2);
	middle = names_append(&nl, &change);
	EXPECT(nl_commit(&nl, first) == -EBUSY && nl_commit(&nl, middle) == -EBUSY);
	EXPECT(nl_trim(&nl, middle) == -EBUSY && !nl_commit(&nl, before));
	synced = nl_next(&nl);
	second = names_append_opaque(&nl, 3);
	nl_settle(&nl, before);
	EXPECT(nl_commit(&nl, first) == -EBUSY);
	nl_settle(&nl, synced);
	EXPECT(!nl_commit(&nl, middle) && nl_commit(&nl, second) == -EBUSY);
	nl_settle(&nl, second);
	EXPECT(!nl_commit(&nl, second) && nl.limit == NL_NO_LIMIT);
}

static void before_recovery(void)
{
	struct nl_place place;
	struct nl again;

	EXPECT(!nl_open(&again, region, NAMES_SIZE, 0));
	EXPECT(nl_reserve(&again, &place, 1) == -ENOSPC);
	EXPECT(!nl_open(&again, region, NAMES_SIZE + 4096, NL_OPEN_READ_ONLY));
	EXPECT(nl_open(&again, region, NAMES_SIZE - 1, 0) == NL_E_TOO_SMALL);
	memset(region, 0, 2 * NL_PAGE_SIZE);
	EXPECT(nl_open(&again, region, NAMES_SIZE, 0) == NL_E_NOT_FORMATTED);
	memset(region, 7, NL_PAGE_SIZE);
	EXPECT(nl_open(&again, region, NAMES_SIZE, 0) == NL_E_FOREIGN);
	for (u32 err = NL_OK; err <= NL_E_GEOMETRY + 1; err++)
		EXPECT(nl_strerror(err) && *nl_strerror(err));
}

void names_basic_tests(void)
{
	start();
	while (nl_next(&nl) < 4 * nl.nr_lines)	/* several times round the ring */
		what_is_written_is_read();
	limits();
	impossible_names();
	impossible_steps();
	space();
	order();
	opaque();
	before_recovery();
}

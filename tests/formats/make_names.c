// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills the name log of an image with what a machine might have left there: records of every kind with the
 * most and the fewest fields, trimmed, committed, and not committed; heartbeats; the decisions of a replay.
 */
#include <assert.h>

#include "image_names.h"
#include "names/layout.h"

static struct nl nl;

static struct nl_text text(const char *bytes)
{
	return (struct nl_text){ .bytes = (const u8 *)bytes, .len = strlen(bytes) };
}

/* Handles of all lengths. */
static struct nl_identity identity(u32 number)
{
	struct nl_identity id = { .btime = 1000 * number, .type = 1 + number % 200 };

	id.len = 1 + number % NL_HANDLE_MAX;
	for (u32 i = 0; i < id.len; i++)
		id.handle[i] = number + i;
	return id;
}

static struct nl_dir directory(u32 number, u64 before)
{
	return (struct nl_dir){
		.id = identity(number), .count = { .before = before, .ctime = 5000 + before },
	};
}

static struct nl_change filled(enum nl_kind kind, u32 has, u32 number)
{
	static const u8 value[NL_VALUE_MAX] = { 1, 2, 0, 3 };
	struct nl_change change = { .kind = kind, .has = has };

	change.dir = directory(1, number);
	change.dir2 = directory(2, number);
	change.object = identity(100 + number);
	change.object2 = identity(200 + number);
	change.needs = identity(300 + number);
	change.self = (struct nl_count){ number, -7 };
	change.self2 = (struct nl_count){ number + 1, 7 };
	change.attr = (struct nl_attr){
		.mask = NL_ATTR_ALL, .mode = 0100640, .uid = number, .gid = 2, .rdev = 3, .iflags = 4,
		.atime = -5, .mtime = 6,
	};
	change.name = text(number % 2 ? "n" : "a longer name");
	change.name2 = text("new name");
	change.target = text("../target");
	change.xattr = text("user.attribute");
	change.value = (struct nl_text){ .bytes = value, .len = 37 * number % NL_VALUE_MAX };
	return change;
}

/* Returns where the record ends. */
static u64 append(struct nl_change *change)
{
	int lines = nl_change_lines(change);
	struct nl_place place;

	assert(lines > 0 && !nl_reserve(&nl, &place, lines));
	nl_take(&nl, &place, lines, false);
	if (change->kind == NL_CREATE || change->kind == NL_TMPFILE)
		change->object.birth = place.start;
	nl_write(&nl, &place, change);
	nl_done(&nl, &place);
	return place.end;
}

/* A kind's record with all that it may have, and one with the least. */
static u64 append_kind(enum nl_kind kind, u32 number)
{
	u32 most = 0, least = ~0u;
	struct nl_change change;

	for (u32 has = 0; has < 1u << NL_NR_FIELDS; has++) {
		change = filled(kind, has, number);
		if (nl_change_lines(&change) > 0) {
			most |= has;
			least &= has;
		}
	}
	change = filled(kind, most, number);
	if (nl_change_lines(&change) > 0)
		append(&change);
	change = filled(kind, least, number + 1);
	return append(&change);
}

void make_names(void *region, unsigned long long size, bool decided, bool flush)
{
	static u8 bits[1 << 16];
	struct nl_change exchange = filled(NL_RENAME, 0, 9);
	u64 end = 0;

	/* `forebay format` gives each log a UUID of its own. The image always has this one. */
	assert(!nl_format(region, size, &(struct nl_format_options){ .uuid = "the name log" }));
	assert(!nl_open(&nl, region, size, flush ? NL_OPEN_FLUSH_CACHES : 0) && !nl_empty(&nl));
	nl_beat(&nl, 1000, 2000, 0);
	end = append_kind(NL_CREATE, 50);
	assert(!nl_commit(&nl, end) && !nl_trim(&nl, end));
	for (u32 kind = NL_CREATE; kind < NL_OPAQUE; kind++)
		end = append_kind(kind, 2 * kind);
	exchange.flags = NL_EXCHANGE;
	exchange.has = NL_HAS(DIR) | NL_HAS(DIR2) | NL_HAS(OBJECT) | NL_HAS(OBJECT2) | NL_HAS(NAME) | NL_HAS(NAME2);
	if (nl_change_lines(&exchange) > 0)
		end = append(&exchange);
	assert(!nl_commit(&nl, end));
	nl_beat(&nl, 3000, 4000, 0);
	end = append_kind(NL_UNLINK, 60);		/* not committed */
	if (!decided)
		return;
	assert(nl_bits_size(&nl) <= sizeof(bits));
	for (u64 place = nl.trim; place < end; place += 3)
		nl_bit_set(&nl, bits, place);
	assert(!nl_decide(&nl, bits, end));
}

// SPDX-License-Identifier: GPL-2.0-only
/* A name log and the storage that it is judged with, for names_judge.c and names_judge_objects.c. */
#include "names_judged.h"

_Alignas(4096) u8 region[NAMES_SIZE];
struct nl nl;
static struct nl_record record;
static struct nl_node nodes[32];
static u32 slots[64];
u8 bits[256];
struct nl_judge judge;
u32 max_nodes = 32;

struct on_storage there[DIRS];

void start(void)
{
	names_forget();
	memset(region, 0, sizeof(region));
	memset(there, 0, sizeof(there));
	names_format(region, 1);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && !nl_empty(&nl));
}

static int look(void *arg, const struct nl_identity *dir, u64 *counter, s64 *ctime)
{
	u32 number = dir->btime - 1000000;

	EXPECT(arg == &nl && number < DIRS && !there[number].forbidden && !there[number].looks++);
	*counter = there[number].counter;
	*ctime = there[number].ctime;
	return there[number].err;
}

int run(void)
{
	judge = (struct nl_judge){
		.nl = &nl, .record = &record, .bits = bits, .look = look, .arg = &nl,
		.nodes = { .nodes = nodes, .max = max_nodes, .slots = slots, .nr_slots = 64 },
	};
	memset(slots, 0, sizeof(slots));
	memset(bits, 0, sizeof(bits));
	for (u32 i = 0; i < DIRS; i++)
		there[i].looks = 0;
	return nl_judge(&judge);
}

/* This verdict, with storage's state of directory 1. */
bool gives(u64 counter, s64 ctime, enum nl_verdict verdict)
{
	there[1].counter = counter;
	there[1].ctime = ctime;
	return !run() && judge.verdict == verdict &&
	       (verdict == NL_EXPLAINED || judge.place || judge.has_dir);
}

bool stored(u64 place)
{
	return nl_bit(&nl, bits, place);
}

struct nl_change link_in(u32 dir, u64 before, s64 ctime, u32 object)
{
	struct nl_change change = names_change(NL_LINK, object);

	change.has = NL_HAS_ENTRY;
	change.dir = (struct nl_dir){ { before, ctime }, names_id(0, dir) };
	return change;
}

/* Returns the record's place. */
u64 append(struct nl_change change)
{
	u64 place = nl_next(&nl);

	EXPECT(names_append(&nl, &change));
	return place;
}

bool gives_attribute(u64 place, u64 counter, s64 ctime, bool expected)
{
	there[3].counter = counter;
	there[3].ctime = ctime;
	return gives(10, 1, NL_EXPLAINED) && stored(place) == expected;
}

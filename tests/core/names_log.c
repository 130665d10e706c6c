// SPDX-License-Identifier: GPL-2.0-only
/*
 * Appends records of every kind to a name log, reads a log into a view, and compares views. Of a record
 * only a hash is kept: a record is there with all its bytes or not at all.
 */
#include "names/layout.h"
#include "names_log.h"

#include <stdlib.h>

static struct {
	struct names_seen seen[65536];
	u32 n;
} appended;

static u64 hash(const u8 *data, u32 len)
{
	u64 sum = 0xcbf29ce484222325ULL;

	while (len--)
		sum = (sum ^ *data++) * 0x100000001b3ULL;
	return sum;
}

static struct {
	struct nl_beat beats[4096];
	u32 n;
} beaten;

void names_forget(void)
{
	appended.n = 0;
	beaten.n = 0;
}

/* Makes a heartbeat, and remembers it. */
void names_beat(struct nl *nl, s64 time, s64 until)
{
	nl_beat(nl, time, until, 0);
	if (beaten.n == 4096)
		abort();
	nl_beat_read(nl, &beaten.beats[beaten.n++]);
}

/*
 * A heartbeat that a cut has torn is made again with other times. Torn once more, it may be whole as it
 * was to be at first. That does no harm: it was true when it was made, and no change was made since.
 */
static bool beat_known(const struct nl_beat *beat, u64 seq)
{
	for (u32 i = beaten.n; i--;)
		if (beat->seq == seq && !memcmp(beat, &beaten.beats[i], sizeof(*beat)))
			return true;
	return false;
}

bool names_known(const struct names_seen *seen)
{
	for (u32 i = appended.n; i--;)
		if (appended.seen[i].place == seen->place && appended.seen[i].hash == seen->hash)
			return true;
	return false;
}

struct nl_text names_text(const char *text)
{
	return (struct nl_text){ .bytes = (const u8 *)text, .len = strlen(text) };
}

/* Distinct handles of distinct lengths. */
struct nl_identity names_id(u64 birth, u32 number)
{
	struct nl_identity id = {
		.birth = birth, .btime = 1000000 + number, .type = 1 + number % 3, .len = 8 + number % 5,
	};

	memcpy(id.handle, &number, sizeof(number));
	return id;
}

static struct nl_dir some_dir(u32 number, u64 before)
{
	return (struct nl_dir){
		.id = names_id(0, number), .count = { .before = before, .ctime = 5000 + before },
	};
}

/* A change of the kind with all that it may have. */
struct nl_change names_change(enum nl_kind kind, u32 number)
{
	static const u8 value[NL_VALUE_MAX] = { 1, 2, 0, 3 };
	static char names[64][16];
	char *name = names[number % 64];
	struct nl_change change = { .kind = kind };

	for (u32 has = 0; has < 1u << NL_NR_FIELDS; has++)
		if (nl_fields_allowed(kind, has))
			change.has |= has;
	memset(name, 'a' + number % 26, 1 + number % 15);
	name[1 + number % 15] = 0;
	change.dir = some_dir(1, number);
	change.dir2 = some_dir(2, number);
	change.object = names_id(0, 100 + number);
	change.object2 = names_id(0, 2000 + number);
	change.needs = names_id(0, 3000 + number);
	change.self = (struct nl_count){ number, -7 };
	change.self2 = (struct nl_count){ number + 1, 7 };
	change.attr = (struct nl_attr){
		.mask = NL_ATTR_ALL, .mode = 0100644, .uid = number, .gid = 2, .rdev = 3, .iflags = 4,
		.atime = -5, .mtime = 6,
	};
	change.name = names_text(name);
	change.name2 = names_text("new name");
	change.target = names_text("../target");
	change.xattr = names_text("user.attribute");
	change.value = (struct nl_text){ .bytes = value, .len = number % 300 };
	return change;
}

/* Writes a record whose place is taken, and remembers it. */
u64 names_write(struct nl *nl, struct nl_place *place, struct nl_change *change)
{
	static struct nl_record record;

	if (change->kind == NL_CREATE || change->kind == NL_TMPFILE)
		change->object.birth = place->start;
	nl_write(nl, place, change);
	if (nl_read(nl, place->start, &record) || record.end != place->end || appended.n == 65536)
		abort();
	appended.seen[appended.n++] = (struct names_seen){
		place->start, hash(record.bytes, (place->end - place->start) * NL_LINE),
	};
	nl_done(nl, place);
	return place->end;
}

static u64 append(struct nl *nl, struct nl_change *change, bool opaque)
{
	int lines = nl_change_lines(change);
	struct nl_place place;

	if (lines < 0 || nl_reserve(nl, &place, lines))
		return 0;
	nl_take(nl, &place, lines, opaque);
	return names_write(nl, &place, change);
}

/* Returns where the record ends; 0: there is no space. */
u64 names_append(struct nl *nl, struct nl_change *change)
{
	return append(nl, change, false);
}

u64 names_append_opaque(struct nl *nl, u32 number)
{
	struct nl_change change = names_change(NL_OPAQUE, number);

	return append(nl, &change, true);
}

void names_format(void *base, u32 id)
{
	struct nl_format_options opt = { };

	memset(opt.uuid, (int)id, NL_UUID_SIZE);
	if (nl_format(base, NAMES_SIZE, &opt))
		abort();
}

static void report(void *arg, const struct nl_damage *damage)
{
	*(u32 *)arg |= damage->kind;
}

/* Returns the kinds of damage that the check finds. */
u32 names_damage(const struct nl *nl)
{
	static struct nl_record scratch;
	u32 kinds = 0;
	u64 found = nl_check(nl, &scratch, report, &kinds);

	if (!found != !kinds)
		abort();
	return kinds;
}

/* Reads a log that is open. */
void names_view_read(struct names_view *view, const struct nl *nl)
{
	static struct nl_record record;
	struct nl_cursor cursor;

	memset(view, 0, offsetof(struct names_view, records));
	memcpy(view->uuid, nl->header.uuid, NL_UUID_SIZE);
	view->decided = nl->decided;
	view->damage = names_damage(nl);
	nl_beat_read(nl, &view->beat);
	nl_cursor_start(&cursor, nl);
	while (nl_cursor_next(&cursor, &record) > 0) {
		if (view->nr == NAMES_RECORDS)
			abort();
		view->records[view->nr] = (struct names_seen){
			record.start, hash(record.bytes, (record.end - record.start) * NL_LINE),
		};
		view->stored[view->nr++] = nl->decided && nl_on_storage(nl, record.start);
		view->nr_committed += cursor.committed;
	}
}

/* Opens and reads an image. */
void names_view_open(struct names_view *view, void *image)
{
	enum nl_error err;
	struct nl nl;

	err = nl_open(&nl, image, NAMES_SIZE, NL_OPEN_READ_ONLY);
	if (err)
		*view = (struct names_view){ .err = err };
	else
		names_view_read(view, &nl);
}

static bool same_committed(const struct names_view *a, const struct names_view *b)
{
	return a->nr_committed == b->nr_committed &&
	       !memcmp(a->records, b->records, a->nr_committed * sizeof(*a->records));
}

static bool same_decisions(const struct names_view *a, const struct names_view *b)
{
	return a->decided == b->decided && (!a->decided ||
	       (a->nr == b->nr && !memcmp(a->records, b->records, a->nr * sizeof(*a->records)) &&
		!memcmp(a->stored, b->stored, a->nr)));
}

const char *names_view_between(const struct names_view *before, const struct names_view *after,
			       const struct names_view *now)
{
	if (now->damage & ~(before->damage | after->damage))
		return "the check finds damage";
	if (memcmp(now->uuid, after->uuid, NL_UUID_SIZE))
		return "it is another log";
	if (!same_committed(now, before) && !same_committed(now, after))
		return "neither the records that were committed before nor those after";
	if (!same_decisions(now, before) && !same_decisions(now, after))
		return "the decisions are neither as before nor as after";
	if (memcmp(&now->beat, &before->beat, sizeof(now->beat)) &&
	    memcmp(&now->beat, &after->beat, sizeof(now->beat)) && !beat_known(&now->beat, after->beat.seq))
		return "the heartbeat is neither the one before nor the one after";
	for (u32 i = now->nr_committed; i < now->nr; i++)
		if (!names_known(&now->records[i]))
			return "the tail holds a record that was never appended";
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writing a record of a name log: a change becomes fields, and fields become lines.
 *
 * A record is made with plain stores, 8 bytes each. They cost no more than a copy in memory and need no
 * fence of the task that makes them. commit.c flushes the lines, once, for all records of a commit. A copy
 * past the caches would need a fence here: the fence of another processor, which commits, does not
 * make it durable.
 */
#include "layout.h"

/* A record on its way into the log. Without a log its bytes are only counted. */
struct emit {
	const struct nl *nl;	/* NULL: count */
	u64	place;		/* of the record */
	u32	length;		/* bytes put so far */
	u32	crc;		/* of the lines that were stored */
	u8	first[NL_LINE];	/* stored last: it has the checksum */
	u8	line[NL_LINE];	/* being filled */
};

static void store_line(const struct nl *nl, u64 place, const u8 *line)
{
	__le64 *to = (void *)nl_line(nl, place);
	__le64 words[NL_LINE / sizeof(__le64)];
	u32 i;

	memcpy(words, line, NL_LINE);
	for (i = 0; i < NL_LINE / sizeof(__le64); i++)
		pm_store64(to + i, words[i]);
}

/* The present line is full, or the last one. */
static void end_line(struct emit *emit, u32 number)
{
	if (number) {
		emit->crc = crc32c(emit->crc, emit->line, NL_LINE);
		store_line(emit->nl, emit->place + number, emit->line);
	} else {
		memcpy(emit->first, emit->line, NL_LINE);
	}
	memset(emit->line, 0, NL_LINE);
}

/* @bytes NULL: zeros. */
static void put(struct emit *emit, const void *bytes, u32 len)
{
	const u8 *from = bytes;

	if (!emit->nl) {
		emit->length += len;
		return;
	}
	while (len) {
		u32 at = emit->length % NL_LINE, part = min_t(u32, len, NL_LINE - at);

		if (from) {
			memcpy(emit->line + at, from, part);
			from += part;
		}
		emit->length += part;
		len -= part;
		if (at + part == NL_LINE)
			end_line(emit, emit->length / NL_LINE - 1);
	}
}

/* A field in two parts; the second may be empty. */
static void put_field(struct emit *emit, enum nl_field type, const void *head, u32 head_len,
		      const void *bytes, u32 len)
{
	struct nl_field_onmedia field = { .type = type, .length = cpu_to_le16(head_len + len) };

	put(emit, &field, sizeof(field));
	put(emit, head, head_len);
	put(emit, bytes, len);
	put(emit, NULL, -(head_len + len) & 3);
}

/* The part of an identity before the handle. */
#define IDENTITY_HEAD	offsetof(struct nl_identity_onmedia, handle)

static void encode_identity(u8 *to, const struct nl_identity *id)
{
	struct nl_identity_onmedia rec;

	rec.birth = cpu_to_le64(id->birth);
	rec.btime = cpu_to_le64(id->btime);
	rec.type = id->type;
	memcpy(to, &rec, IDENTITY_HEAD);
}

static void encode_count(u8 *to, const struct nl_count *count)
{
	struct nl_count_onmedia rec = {
		.before = cpu_to_le64(count->before),
		.ctime = cpu_to_le64(count->ctime),
	};

	memcpy(to, &rec, sizeof(rec));
}

static void put_identity(struct emit *emit, enum nl_field type, const struct nl_identity *id)
{
	u8 head[IDENTITY_HEAD];

	encode_identity(head, id);
	put_field(emit, type, head, sizeof(head), id->handle, id->len);
}

static void put_dir(struct emit *emit, enum nl_field type, const struct nl_dir *dir)
{
	u8 head[sizeof(struct nl_count_onmedia) + IDENTITY_HEAD];

	encode_count(head, &dir->count);
	encode_identity(head + sizeof(struct nl_count_onmedia), &dir->id);
	put_field(emit, type, head, sizeof(head), dir->id.handle, dir->id.len);
}

static void put_count(struct emit *emit, enum nl_field type, const struct nl_count *count)
{
	u8 rec[sizeof(struct nl_count_onmedia)];

	encode_count(rec, count);
	put_field(emit, type, rec, sizeof(rec), NULL, 0);
}

static void put_attr(struct emit *emit, const struct nl_attr *attr)
{
	struct nl_attr_onmedia rec = { .mask = cpu_to_le32(attr->mask) };

	if (attr->mask & NL_ATTR_MODE)
		rec.mode = cpu_to_le32(attr->mode);
	if (attr->mask & NL_ATTR_UID)
		rec.uid = cpu_to_le32(attr->uid);
	if (attr->mask & NL_ATTR_GID)
		rec.gid = cpu_to_le32(attr->gid);
	if (attr->mask & NL_ATTR_RDEV)
		rec.rdev = cpu_to_le32(attr->rdev);
	if (attr->mask & NL_ATTR_IFLAGS)
		rec.iflags = cpu_to_le32(attr->iflags);
	if (attr->mask & NL_ATTR_ATIME)
		rec.atime = cpu_to_le64(attr->atime);
	if (attr->mask & NL_ATTR_MTIME)
		rec.mtime = cpu_to_le64(attr->mtime);
	put_field(emit, NL_F_ATTR, &rec, sizeof(rec), NULL, 0);
}

static void put_text(struct emit *emit, enum nl_field type, const struct nl_text *text)
{
	put_field(emit, type, NULL, 0, text->bytes, text->len);
}

/* In the order of their types. */
static void put_fields(struct emit *emit, const struct nl_change *change)
{
	if (change->has & NL_HAS(DIR))
		put_dir(emit, NL_F_DIR, &change->dir);
	if (change->has & NL_HAS(DIR2))
		put_dir(emit, NL_F_DIR2, &change->dir2);
	if (change->has & NL_HAS(OBJECT))
		put_identity(emit, NL_F_OBJECT, &change->object);
	if (change->has & NL_HAS(OBJECT2))
		put_identity(emit, NL_F_OBJECT2, &change->object2);
	if (change->has & NL_HAS(SELF))
		put_count(emit, NL_F_SELF, &change->self);
	if (change->has & NL_HAS(SELF2))
		put_count(emit, NL_F_SELF2, &change->self2);
	if (change->has & NL_HAS(NEEDS))
		put_identity(emit, NL_F_NEEDS, &change->needs);
	if (change->has & NL_HAS(ATTR))
		put_attr(emit, &change->attr);
	if (change->has & NL_HAS(NAME))
		put_text(emit, NL_F_NAME, &change->name);
	if (change->has & NL_HAS(NAME2))
		put_text(emit, NL_F_NAME2, &change->name2);
	if (change->has & NL_HAS(TARGET))
		put_text(emit, NL_F_TARGET, &change->target);
	if (change->has & NL_HAS(XATTR))
		put_text(emit, NL_F_XATTR, &change->xattr);
	if (change->has & NL_HAS(VALUE))
		put_text(emit, NL_F_VALUE, &change->value);
}

/* The bytes of a record. */
static u32 length_of(const struct nl_change *change)
{
	struct emit emit = { .length = sizeof(struct nl_record_onmedia) };

	put_fields(&emit, change);
	return emit.length;
}

static bool length_fits(u32 has, u32 field, u32 len, u32 max)
{
	return !(has & 1u << field) || len <= max;
}

/**
 * nl_change_lines - how many lines the record of a change takes
 * @change: the change; handles that are not known yet count with NL_HANDLE_MAX bytes
 *
 * Context: Any; doesn't sleep.
 * Return: lines, 1 to NL_MAX_LINES; -E2BIG: a part of the change is too long for the log; -EINVAL: a
 * field is missing, or the kind of change doesn't have one. After an error the change leaves an opaque
 * record, and the next sync goes below.
 */
int nl_change_lines(const struct nl_change *change)
{
	u32 has = change->has, lines;

	if (!nl_change_allowed(change))
		return -EINVAL;
	if (!length_fits(has, NL_F_NAME, change->name.len, NL_NAME_MAX) ||
	    !length_fits(has, NL_F_NAME2, change->name2.len, NL_NAME_MAX) ||
	    !length_fits(has, NL_F_TARGET, change->target.len, NL_TARGET_MAX) ||
	    !length_fits(has, NL_F_XATTR, change->xattr.len, NL_NAME_MAX) ||
	    !length_fits(has, NL_F_VALUE, change->value.len, NL_VALUE_MAX) ||
	    change->dir.id.len > NL_HANDLE_MAX || change->dir2.id.len > NL_HANDLE_MAX ||
	    change->object.len > NL_HANDLE_MAX || change->object2.len > NL_HANDLE_MAX ||
	    change->needs.len > NL_HANDLE_MAX)
		return -E2BIG;
	lines = (length_of(change) + NL_LINE - 1) / NL_LINE;
	return lines <= NL_MAX_LINES ? (int)lines : -E2BIG;
}

/* Stores a record. It is durable after its lines were flushed and fenced. For append.c. */
void nl_record_write(const struct nl *nl, u64 place, u64 began, u32 lines,
		     const struct nl_change *change)
{
	struct nl_record_onmedia rec = {
		.place = cpu_to_le64(place),
		.began = cpu_to_le64(began),
		.lines = cpu_to_le16(lines),
		.length = cpu_to_le16(length_of(change)),
		.kind = change->kind,
		.flags = change->flags,
	};
	struct emit emit = { .nl = nl, .place = place, .crc = nl->seed };

	put(&emit, &rec, sizeof(rec));
	put_fields(&emit, change);
	put(&emit, NULL, lines * NL_LINE - emit.length);
	rec.crc = cpu_to_le32(~crc32c(emit.crc, emit.first, NL_LINE));
	memcpy(emit.first, &rec, sizeof(rec));
	store_line(nl, place, emit.first);
}

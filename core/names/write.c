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

/* A record on its way into the log. */
struct emit {
	const struct nl *nl;
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

static void put(struct emit *emit, const void *bytes, u32 len)
{
	const u8 *from = bytes;
	u32 at = emit->length % NL_LINE;

	while (len >= NL_LINE - at) {
		memcpy(emit->line + at, from, NL_LINE - at);
		end_line(emit, emit->length / NL_LINE);
		emit->length += NL_LINE - at;
		from += NL_LINE - at;
		len -= NL_LINE - at;
		at = 0;
	}
	memcpy(emit->line + at, from, len);
	emit->length += len;
}

/* Zeros, at most to the end of the line, which has them already. */
static void put_zeros(struct emit *emit, u32 len)
{
	emit->length += len;
	if (len && !(emit->length % NL_LINE))
		end_line(emit, emit->length / NL_LINE - 1);
}

/* The part of an identity before the handle. */
#define IDENTITY_HEAD	offsetof(struct nl_identity_onmedia, handle)
#define IDENTITY_MAX	(IDENTITY_HEAD + NL_HANDLE_MAX)
/* The longest field but a text: a directory's counter and identity. A multiple of 4. */
#define PART_MAX	((sizeof(struct nl_count_onmedia) + IDENTITY_MAX + 3) & ~3)

/* The bytes of a field with so many of its own. */
static u32 field_size(u32 len)
{
	return sizeof(struct nl_field_onmedia) + nl_round_up(len, 4);
}

static u32 identity_length(const struct nl_identity *id)
{
	return IDENTITY_HEAD + id->len;
}

static void encode_identity(u8 *to, const struct nl_identity *id)
{
	struct nl_identity_onmedia rec;

	rec.birth = cpu_to_le64(id->birth);
	rec.btime = cpu_to_le64(id->btime);
	rec.type = id->type;
	memcpy(to, &rec, IDENTITY_HEAD);
	memcpy(to + IDENTITY_HEAD, id->handle, id->len);
}

static void encode_count(u8 *to, const struct nl_count *count)
{
	struct nl_count_onmedia rec = {
		.before = cpu_to_le64(count->before),
		.ctime = cpu_to_le64(count->ctime),
	};

	memcpy(to, &rec, sizeof(rec));
}

/* A field of up to PART_MAX bytes, with the zeros behind it: few calls, for each change has some of these. */
struct part {
	struct nl_field_onmedia field;
	u8	bytes[PART_MAX];
};

static void put_part(struct emit *emit, enum nl_field type, struct part *part, u32 len)
{
	part->field = (struct nl_field_onmedia){ .type = type, .length = cpu_to_le16(len) };
	memset(part->bytes + len, 0, -len & 3);
	put(emit, part, field_size(len));
}

static void put_identity(struct emit *emit, enum nl_field type, const struct nl_identity *id)
{
	struct part part;

	encode_identity(part.bytes, id);
	put_part(emit, type, &part, identity_length(id));
}

static void put_dir(struct emit *emit, enum nl_field type, const struct nl_dir *dir)
{
	struct part part;

	encode_count(part.bytes, &dir->count);
	encode_identity(part.bytes + sizeof(struct nl_count_onmedia), &dir->id);
	put_part(emit, type, &part, sizeof(struct nl_count_onmedia) + identity_length(&dir->id));
}

static void put_count(struct emit *emit, enum nl_field type, const struct nl_count *count)
{
	struct part part;

	encode_count(part.bytes, count);
	put_part(emit, type, &part, sizeof(struct nl_count_onmedia));
}

static void put_attr(struct emit *emit, const struct nl_attr *attr)
{
	struct nl_attr_onmedia rec = { .mask = cpu_to_le32(attr->mask) };
	struct part part;

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
	memcpy(part.bytes, &rec, sizeof(rec));
	put_part(emit, NL_F_ATTR, &part, sizeof(rec));
}

static void put_text(struct emit *emit, enum nl_field type, const struct nl_text *text)
{
	struct nl_field_onmedia field = { .type = type, .length = cpu_to_le16(text->len) };

	put(emit, &field, sizeof(field));
	put(emit, text->bytes, text->len);
	put_zeros(emit, -text->len & 3);
}

/* Puts the fields in the order of their types. */
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

/* The bytes of the fields that put_text() puts. */
static u32 length_of_texts(const struct nl_change *change)
{
	u32 has = change->has, length = 0;

	if (has & NL_HAS(NAME))
		length += field_size(change->name.len);
	if (has & NL_HAS(NAME2))
		length += field_size(change->name2.len);
	if (has & NL_HAS(TARGET))
		length += field_size(change->target.len);
	if (has & NL_HAS(XATTR))
		length += field_size(change->xattr.len);
	if (has & NL_HAS(VALUE))
		length += field_size(change->value.len);
	return length;
}

/* The bytes of a record, as put_fields() puts them. */
static u32 length_of(const struct nl_change *change)
{
	const u32 count = sizeof(struct nl_count_onmedia);
	u32 has = change->has, length = sizeof(struct nl_record_onmedia) + length_of_texts(change);

	if (has & NL_HAS(DIR))
		length += field_size(count + identity_length(&change->dir.id));
	if (has & NL_HAS(DIR2))
		length += field_size(count + identity_length(&change->dir2.id));
	if (has & NL_HAS(OBJECT))
		length += field_size(identity_length(&change->object));
	if (has & NL_HAS(OBJECT2))
		length += field_size(identity_length(&change->object2));
	if (has & NL_HAS(SELF))
		length += field_size(count);
	if (has & NL_HAS(SELF2))
		length += field_size(count);
	if (has & NL_HAS(NEEDS))
		length += field_size(identity_length(&change->needs));
	if (has & NL_HAS(ATTR))
		length += field_size(sizeof(struct nl_attr_onmedia));
	return length;
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
	while (emit.length < lines * NL_LINE)
		put_zeros(&emit, NL_LINE - emit.length % NL_LINE);
	rec.crc = cpu_to_le32(~crc32c(emit.crc, emit.first, NL_LINE));
	memcpy(emit.first, &rec, sizeof(rec));
	store_line(nl, place, emit.first);
}

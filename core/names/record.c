// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading a record of a name log. Nothing in the region is trusted: a record is copied, and everything in
 * it is verified before use. write.c has the other direction.
 */
#include "layout.h"

/* Copies a record's lines behind the first. False: they can't be read. */
static bool read_lines(const struct nl *nl, u64 place, u32 lines, u8 *to)
{
	u64 at = place % nl->nr_lines;
	u32 before = min_t(u64, lines, nl->nr_lines - at);	/* the end of the ring */

	return pm_read(to, nl->ring + at * NL_LINE, before * NL_LINE) &&
	       (before == lines ||
		pm_read(to + before * NL_LINE, nl->ring, (lines - before) * NL_LINE));
}

static u32 record_crc(const struct nl *nl, const u8 *bytes, u32 lines)
{
	struct nl_record_onmedia rec;
	u8 first[NL_LINE];

	memcpy(first, bytes, NL_LINE);
	memcpy(&rec, first, sizeof(rec));
	rec.crc = 0;
	memcpy(first, &rec, sizeof(rec));
	return ~crc32c(crc32c(nl->seed, bytes + NL_LINE, (lines - 1) * NL_LINE), first, NL_LINE);
}

static bool parse_identity(struct nl_identity *id, const u8 *bytes, u32 len)
{
	const u32 head = offsetof(struct nl_identity_onmedia, handle);
	struct nl_identity_onmedia rec;

	if (len < head || len > head + NL_HANDLE_MAX)
		return false;
	memcpy(&rec, bytes, head);
	id->birth = le64_to_cpu(rec.birth);
	id->btime = le64_to_cpu(rec.btime);
	id->type = rec.type;
	id->len = len - head;
	memcpy(id->handle, bytes + head, id->len);
	return true;
}

static bool parse_count(struct nl_count *count, const u8 *bytes, u32 len)
{
	struct nl_count_onmedia rec;

	if (len != sizeof(rec))
		return false;
	memcpy(&rec, bytes, sizeof(rec));
	count->before = le64_to_cpu(rec.before);
	count->ctime = le64_to_cpu(rec.ctime);
	return true;
}

static bool parse_dir(struct nl_dir *dir, const u8 *bytes, u32 len)
{
	const u32 head = sizeof(struct nl_count_onmedia);

	return len >= head && parse_count(&dir->count, bytes, head) &&
	       parse_identity(&dir->id, bytes + head, len - head);
}

static bool parse_attr(struct nl_attr *attr, const u8 *bytes, u32 len)
{
	struct nl_attr_onmedia rec;

	if (len != sizeof(rec))
		return false;
	memcpy(&rec, bytes, sizeof(rec));
	*attr = (struct nl_attr){
		.mask = le32_to_cpu(rec.mask),
		.mode = le32_to_cpu(rec.mode),
		.uid = le32_to_cpu(rec.uid),
		.gid = le32_to_cpu(rec.gid),
		.rdev = le32_to_cpu(rec.rdev),
		.iflags = le32_to_cpu(rec.iflags),
		.atime = le64_to_cpu(rec.atime),
		.mtime = le64_to_cpu(rec.mtime),
	};
	return true;
}

/* A text of 1 to @max bytes without a 0. */
static bool parse_text(struct nl_text *text, const u8 *bytes, u32 len, u32 max)
{
	*text = (struct nl_text){ .bytes = bytes, .len = len };
	return len && len <= max && !memchr(bytes, 0, len);
}

/* A name that a directory may have. */
static bool parse_name(struct nl_text *name, const u8 *bytes, u32 len)
{
	return parse_text(name, bytes, len, NL_NAME_MAX) && !memchr(bytes, '/', len) &&
	       !(bytes[0] == '.' && (len == 1 || (len == 2 && bytes[1] == '.')));
}

static bool parse_field(struct nl_change *change, u32 type, const u8 *bytes, u32 len)
{
	switch (type) {
	case NL_F_DIR:
		return parse_dir(&change->dir, bytes, len);
	case NL_F_DIR2:
		return parse_dir(&change->dir2, bytes, len);
	case NL_F_OBJECT:
		return parse_identity(&change->object, bytes, len);
	case NL_F_OBJECT2:
		return parse_identity(&change->object2, bytes, len);
	case NL_F_SELF:
		return parse_count(&change->self, bytes, len);
	case NL_F_SELF2:
		return parse_count(&change->self2, bytes, len);
	case NL_F_NEEDS:
		return parse_identity(&change->needs, bytes, len);
	case NL_F_ATTR:
		return parse_attr(&change->attr, bytes, len);
	case NL_F_NAME:
		return parse_name(&change->name, bytes, len);
	case NL_F_NAME2:
		return parse_name(&change->name2, bytes, len);
	case NL_F_TARGET:
		return parse_text(&change->target, bytes, len, NL_TARGET_MAX);
	case NL_F_XATTR:
		return parse_text(&change->xattr, bytes, len, NL_NAME_MAX);
	case NL_F_VALUE:
		change->value = (struct nl_text){ .bytes = bytes, .len = len };
		return len <= NL_VALUE_MAX;
	}
	return false;
}

static bool parse_fields(struct nl_change *change, const u8 *bytes, u32 length)
{
	struct nl_field_onmedia field;
	u32 at = sizeof(struct nl_record_onmedia), last = 0;

	while (at < length) {
		u32 len;

		if (length - at < sizeof(field))
			return false;
		memcpy(&field, bytes + at, sizeof(field));
		at += sizeof(field);
		len = le16_to_cpu(field.length);
		if (field.type <= last || field.reserved || len > length - at ||
		    !parse_field(change, field.type, bytes + at, len))
			return false;
		last = field.type;
		change->has |= 1u << last;
		at += nl_round_up(len, 4);
	}
	return at == length && nl_change_allowed(change);
}

/* An object that a record creates has the record's place as its birth. All others were born before. */
static bool births_possible(const struct nl_change *change, u64 place)
{
	bool creates = change->kind == NL_CREATE || change->kind == NL_TMPFILE;

	return (creates ? change->object.birth == place : change->object.birth < place) &&
	       change->dir.id.birth < place && change->dir2.id.birth < place &&
	       change->object2.birth < place && change->needs.birth < place;
}

/**
 * nl_read - read and verify the record at a place
 * @nl: log
 * @place: where a record may begin
 * @record: overwritten; valid if 0 is returned
 *
 * Context: Any; nothing changes the record meanwhile. Takes time in proportion to its length.
 * Return: 0; -ENOENT: no record of this place; -EUCLEAN: one that is damaged or can't be read.
 */
int nl_read(const struct nl *nl, u64 place, struct nl_record *record)
{
	struct nl_record_onmedia rec;
	u32 lines;

	if (!read_lines(nl, place, 1, record->bytes))
		return -EUCLEAN;
	memcpy(&rec, record->bytes, sizeof(rec));
	if (le64_to_cpu(rec.place) != place)
		return -ENOENT;
	lines = le16_to_cpu(rec.lines);
	if (!lines || lines > NL_MAX_LINES || le16_to_cpu(rec.length) > lines * NL_LINE ||
	    !read_lines(nl, place, lines, record->bytes) ||
	    le32_to_cpu(rec.crc) != record_crc(nl, record->bytes, lines))
		return -EUCLEAN;
	memset(&record->change, 0, sizeof(record->change));
	record->start = place;
	record->end = place + lines;
	record->began = le64_to_cpu(rec.began);
	record->change.kind = rec.kind;
	record->change.flags = rec.flags;
	if (record->began > place || memchr_inv(rec.reserved, 0, sizeof(rec.reserved)) ||
	    !parse_fields(&record->change, record->bytes, le16_to_cpu(rec.length)) ||
	    !births_possible(&record->change, place))
		return -EUCLEAN;
	return 0;
}

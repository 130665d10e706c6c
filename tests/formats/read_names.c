// SPDX-License-Identifier: GPL-2.0-only
/* Prints the name log of an image as recovery finds it: the log's words, and each record with all its fields. */
#include <stdio.h>
#include <stdlib.h>

#include "image_names.h"
#include "image_print.h"
#include "names/layout.h"

static void identity(const char *key, const struct nl_identity *id)
{
	printf(", \"%s\": [%llu, %lld, %u", key, id->birth, (long long)id->btime, id->type);
	printf(", \"");
	for (u32 i = 0; i < id->len; i++)
		printf("%02x", id->handle[i]);
	printf("\"]");
}

static void count(const char *key, const struct nl_count *counted)
{
	printf(", \"%s\": [%llu, %lld]", key, counted->before, (long long)counted->ctime);
}

static void directory(const char *key, const char *count_key, const struct nl_dir *dir)
{
	identity(key, &dir->id);
	count(count_key, &dir->count);
}

static void attributes(const struct nl_attr *attr)
{
	printf(", \"attr\": [%u, %u, %u, %u, %u, %u, %lld, %lld]", attr->mask, attr->mode, attr->uid, attr->gid,
	       attr->rdev, attr->iflags, (long long)attr->atime, (long long)attr->mtime);
}

static void objects(const struct nl_change *c)
{
	if (c->has & NL_HAS(DIR))
		directory("dir", "dir_count", &c->dir);
	if (c->has & NL_HAS(DIR2))
		directory("dir2", "dir2_count", &c->dir2);
	if (c->has & NL_HAS(OBJECT))
		identity("object", &c->object);
	if (c->has & NL_HAS(OBJECT2))
		identity("object2", &c->object2);
	if (c->has & NL_HAS(SELF))
		count("self", &c->self);
	if (c->has & NL_HAS(SELF2))
		count("self2", &c->self2);
	if (c->has & NL_HAS(NEEDS))
		identity("needs", &c->needs);
}

static void texts(const struct nl_change *c)
{
	if (c->has & NL_HAS(NAME))
		hex("name", c->name.bytes, c->name.len);
	if (c->has & NL_HAS(NAME2))
		hex("name2", c->name2.bytes, c->name2.len);
	if (c->has & NL_HAS(TARGET))
		hex("target", c->target.bytes, c->target.len);
	if (c->has & NL_HAS(XATTR))
		hex("xattr", c->xattr.bytes, c->xattr.len);
	if (c->has & NL_HAS(VALUE))
		hex("value", c->value.bytes, c->value.len);
}

static void print_record(const struct nl *nl, const void *base, const struct nl_cursor *cursor,
			 const struct nl_record *record)
{
	const struct nl_change *c = &record->change;

	printf("{\"what\": \"change\"");
	number("place", record->start);
	number("end", record->end);
	number("began", record->began);
	number("committed", cursor->committed);
	if (nl->decided)
		number("on_storage", nl_on_storage(nl, record->start));
	number("kind", c->kind);
	number("flags", c->flags);
	number("has", c->has);
	objects(c);
	if (c->has & NL_HAS(ATTR))
		attributes(&c->attr);
	texts(c);
	number("data", nl_line(nl, record->start) - (const u8 *)base);
	number("bytes", (record->end - record->start) * NL_LINE);
	puts("}");
}

static void print_log(const struct nl *nl, const void *base)
{
	struct nl_beat beat;

	nl_beat_read(nl, &beat);
	printf("{\"what\": \"names\"");
	number("nr_lines", nl->nr_lines);
	number("bad", nl->bad);
	number("decided", nl->decided);
	number("trim", nl->trim);
	number("commit", nl->commit);
	number("next", nl->next);
	number("words", (const u8 *)nl->words - (const u8 *)base);
	printf(", \"beat\": [%llu, %lld, %lld, %llu, %llu]", beat.seq, (long long)beat.time, (long long)beat.until,
	       beat.durable, beat.commit);
	puts("}");
}

void read_names(const void *base, void *region, unsigned long long size, bool write)
{
	struct nl_record *record = malloc(sizeof(*record));
	struct nl_cursor cursor;
	struct nl nl;
	int err = nl_open(&nl, region, size, write ? 0 : NL_OPEN_READ_ONLY);

	if (!record)
		abort();
	if (err) {
		printf("{\"what\": \"no names\", \"error\": %d}\n", err);
		free(record);
		return;
	}
	print_log(&nl, base);
	nl_cursor_start(&cursor, &nl);
	while ((err = nl_cursor_next(&cursor, record)) > 0)
		print_record(&nl, base, &cursor, record);
	if (err)
		printf("{\"what\": \"name damage\", \"kind\": %u, \"place\": %llu}\n", cursor.damage.kind,
		       cursor.damage.place);
	free(record);
}

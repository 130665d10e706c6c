// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a write log read-only, counts what it holds and describes it in JSON. Verbs use this for logs that
 * no target uses.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/shell.h"
#include "log.h"

/**
 * log_open - open the log on a device read-only
 * @wl: filled in
 * @dev: device, mapped
 *
 * Return: false, after a message, if there is no log.
 */
bool log_open(struct wl *wl, const struct device *dev)
{
	enum wl_error err = wl_open(wl, dev->base, dev->size, WL_OPEN_READ_ONLY);

	if (!err)
		return true;
	problem("%s: %s", dev->path, wl_strerror(err));
	if (err == WL_E_CORRUPT || err == WL_E_GEOMETRY)
		advice("`forebay writelog check %s` tells more.", in_shell(dev->path));
	else if (err == WL_E_PAGESTORE)
		advice("`forebay status %s` shows that.", in_shell(dev->path));
	return false;
}

static void count_generations(const struct wl *wl, struct log_counts *counts)
{
	for (u32 gen = 0; gen < wl->nr_gens; gen++) {
		struct wl_gen_info info;

		if (wl_gen_read(wl, gen, &info))
			continue;
		counts->generations_free += info.state == WL_GEN_FREE;
		counts->generations_open += info.state == WL_GEN_OPEN;
		counts->generations_sealed += info.state == WL_GEN_SEALED;
	}
}

/**
 * log_count - count what a log holds, and report every two seconds that this goes on
 * @path: of the device, for the report
 * @wl: log
 * @counts: filled in
 *
 * Return: false, after a message, if there is not enough memory.
 */
bool log_count(const char *path, const struct wl *wl, struct log_counts *counts)
{
	struct wl_stream *streams = malloc(sizeof(*streams) * wl->nr_chunks);
	struct progress progress;
	struct wl_cursor cursor;
	struct wl_entry entry;
	int got;

	*counts = (struct log_counts){ };
	if (!streams) {
		problem("not enough memory to replay %u chunks", wl->nr_chunks);
		return false;
	}
	progress_begin(&progress, path, "being read");
	count_generations(wl, counts);
	wl_cursor_start(&cursor, wl, streams, 0);
	while ((got = wl_cursor_next(&cursor, &entry))) {
		if (got < 0) {
			counts->damaged++;
			continue;
		}
		counts->entries++;
		counts->writes += entry.op == WL_OP_WRITE;
		counts->discards += entry.op != WL_OP_WRITE;
		counts->bytes += wl_entry_len(&entry);
	}
	progress_end(&progress);
	free(streams);
	return true;
}

/**
 * log_origin - the name of an origin as text
 * @text: where to put it
 * @id: as in a superblock
 *
 * Return: the name if it is printable, else in hexadecimal; "" if there is none.
 */
const char *log_origin(char text[2 * WL_ORIGIN_ID_SIZE + 1], const u8 id[WL_ORIGIN_ID_SIZE])
{
	u32 len = WL_ORIGIN_ID_SIZE;
	bool printable = true;

	while (len && !id[len - 1])
		len--;
	for (u32 i = 0; i < len; i++)
		printable = printable && isgraph(id[i]);
	*text = '\0';
	if (printable)
		snprintf(text, WL_ORIGIN_ID_SIZE + 1, "%.*s", (int)len, (const char *)id);
	else
		for (u32 i = 0; i < len; i++)
			sprintf(text + 2 * i, "%02x", id[i]);
	return text;
}

static const char *fingerprint_text(const struct wl *wl, char text[2 * WL_ORIGIN_ID_SIZE + 1])
{
	u32 fingerprint = wl_fingerprint(wl);

	if (fingerprint == WL_FINGERPRINT_NONE)
		return "none";
	if (fingerprint == WL_FINGERPRINT_CHANGING)
		return "changing";
	sprintf(text, "%08x", fingerprint);
	return text;
}

/**
 * log_describe - describe a log and its contents
 * @wl: log
 * @counts: from log_count(); NULL: leave the contents out
 * @json: the object to add it to
 */
void log_describe(const struct wl *wl, const struct log_counts *counts, json_object *json)
{
	char text[2 * WL_ORIGIN_ID_SIZE + 1], uuid[37];

	json_add_text(json, "uuid", uuid_text(uuid, wl->super.uuid));
	json_add_number(json, "bytes_total", (u64)wl->nr_gens * wl->nr_chunks * wl->chunk_size);
	json_add_number(json, "generations_total", wl->nr_gens);
	json_add_number(json, "chunks_per_generation", wl->nr_chunks);
	json_add_number(json, "chunk_size", wl->chunk_size);
	json_add_number(json, "align", wl->align);
	json_add_flag(json, "data_checksums", wl->data_crc);
	json_add_flag(json, "bound", wl_is_bound(wl));
	json_add_number(json, "origin_sectors", le64_to_cpu(wl->super.origin_sectors));
	json_add_text(json, "origin_id", log_origin(text, wl->super.origin_id));
	json_add_text(json, "origin_fingerprint", fingerprint_text(wl, text));
	if (!counts)
		return;
	json_add_number(json, "generations_free", counts->generations_free);
	json_add_number(json, "generations_open", counts->generations_open);
	json_add_number(json, "generations_sealed", counts->generations_sealed);
	json_add_number(json, "entries", counts->entries);
	json_add_number(json, "writes", counts->writes);
	json_add_number(json, "discards", counts->discards);
	json_add_number(json, "bytes_used", counts->bytes);
	json_add_number(json, "damaged", counts->damaged);
}

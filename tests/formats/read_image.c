// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a cache or a write log with core's own code, as recovery does, and prints a line of JSON for each
 * thing found. Data are not printed: "data" is their offset in the image, and "bytes" their length.
 *
 *	read_image cache|log PATH		change nothing
 *	read_image cache|log PATH write		open it for writing: core rewrites damaged superblocks
 *
 * `make` builds this program against the core of an old commit, too, with -DFOREBAY_NO_TIME: file records
 * had no time.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include("store/store.h")
#include "log/log.h"
#include "pm/host.h"
#include "store/store.h"
#else	/* up to 4c15243 */
#include "host_pm.h"
#include "pagestore.h"
#include "writelog.h"
#endif

#include "image_names.h"
#include "image_print.h"

static u8 *base;
static u64 size;

static void begin(const char *what)
{
	printf("{\"what\": \"%s\"", what);
}

static void end(void)
{
	puts("}");
}

static void cannot_open(int err)
{
	begin("nothing");
	number("error", err);
	end();
}

/* --- the page store --- */

static void print_store(const struct ps *ps)
{
	const struct ps_super_onmedia *s = &ps->super;

	begin("cache");
	number("seq", le64_to_cpu(s->seq));
	number("device_size", le64_to_cpu(s->device_size));
	number("nr_files", ps->nr_files);
	number("nr_pages", ps->nr_pages);
	number("file_table", le64_to_cpu(s->file_table));
	number("page_table", le64_to_cpu(s->page_table));
	number("data_start", le64_to_cpu(s->data));
	hex("uuid", s->cache_uuid, PS_UUID_SIZE);
	if (ps_is_bound(ps)) {
		hex("lower", s->lower_uuid, PS_UUID_SIZE);
		number("root_type", le32_to_cpu(s->root_type));
		hex("root", s->root_handle, le32_to_cpu(s->root_len));
	}
	end();
}

static void print_file(const struct ps *ps, u32 file)
{
	struct ps_file_info info;
	int err = ps_file_read(ps, file, &info);

	if (!err && info.state == PS_FILE_FREE && !info.generation)
		return;
	begin("file");
	number("number", file);
	number("damaged", !!err);
	number("state", info.state);
	number("generation", info.generation);
	number("size", info.size);
#ifndef FOREBAY_NO_TIME
	number("time", info.time);
#endif
	number("type", info.handle.type);
	hex("handle", info.handle.bytes, info.handle.len);
	end();
}

static void print_page(const struct ps *ps, u32 page)
{
	struct ps_page_info info;
	int err = ps_page_read(ps, page, &info);

	if (!err && info.state == PS_PAGE_FREE)
		return;
	begin("page");
	number("number", page);
	number("stale", err == -ESTALE);
	number("damaged", err && err != -ESTALE);
	if (!err) {
		number("state", info.state);
		number("file", info.file);
		number("index", info.index);
		number("data", (u8 *)ps_page_addr(ps, page) - ps->base);
		number("bytes", PS_PAGE_SIZE);
	}
	end();
}

static void read_store(u32 flags)
{
	enum ps_error err;
	struct ps ps;

	err = ps_open(&ps, base, size, flags);
	if (err) {
		cannot_open(err);
		return;
	}
	print_store(&ps);
	for (u32 file = 0; file < ps.nr_files; file++)
		print_file(&ps, file);
	for (u32 page = 0; page < ps.nr_pages; page++)
		print_page(&ps, page);
#if HAS_NAMES
	if (ps.names)
		read_names(base, ps.names, ps.names_size, !(flags & PS_OPEN_READ_ONLY));
#endif
}

/* --- the write log --- */

static void print_log(const struct wl *wl)
{
	const struct wl_super_onmedia *s = &wl->super;

	begin("log");
	number("seq", le64_to_cpu(s->seq));
	number("device_size", le64_to_cpu(s->device_size));
	number("nr_gens", wl->nr_gens);
	number("nr_chunks", wl->nr_chunks);
	number("chunk_size", wl->chunk_size);
	number("align", wl->align);
	number("table", le64_to_cpu(s->table));
	number("data_start", le64_to_cpu(s->data));
	number("flags", le32_to_cpu(s->flags));
	number("next_id", wl_next_id(wl));
	hex("uuid", s->uuid, WL_UUID_SIZE);
	number("origin_sectors", le64_to_cpu(s->origin_sectors));
	hex("origin", s->origin_id, WL_ORIGIN_ID_SIZE);
	end();
}

static void print_gen(const struct wl *wl, u32 gen)
{
	struct wl_gen_info info;

	begin("generation");
	number("number", gen);
	number("damaged", !!wl_gen_read(wl, gen, &info));
	number("state", info.state);
	number("id", info.id);
	number("entries", info.entries);
	end();
}

static void print_entry(const struct wl_entry *entry)
{
	begin("entry");
	number("order", entry->order);
	number("op", entry->op);
	number("sector", entry->sector);
	number("nr_sectors", entry->nr_sectors);
	number("gen", entry->gen);
	number("chunk", entry->chunk);
	number("index", entry->index);
	number("data", entry->data);
	number("bytes", wl_entry_len(entry));
	end();
}

static void print_damage(const struct wl_damage *damage)
{
	begin("damage");
	number("kind", damage->kind);
	number("gen", damage->gen);
	number("chunk", damage->chunk);
	number("index", damage->index);
	end();
}

static void replay(const struct wl *wl)
{
	struct wl_stream *streams = calloc(wl->nr_chunks, sizeof(*streams));
	struct wl_cursor cursor;
	struct wl_entry entry;
	int found;

	assert(streams);
	wl_cursor_start(&cursor, wl, streams, WL_VERIFY_DATA);
	while ((found = wl_cursor_next(&cursor, &entry))) {
		if (found == 1)
			print_entry(&entry);
		else
			print_damage(&cursor.damage);
	}
	free(streams);
}

static void read_log(u32 flags)
{
	enum wl_error err;
	struct wl wl;

	err = wl_open(&wl, base, size, flags);
	if (err) {
		cannot_open(err);
		return;
	}
	print_log(&wl);
	for (u32 gen = 0; gen < wl.nr_gens; gen++)
		print_gen(&wl, gen);
	replay(&wl);
}

int main(int argc, char **argv)
{
	bool write = argc > 3;
	int fd = open(argv[2], write ? O_RDWR : O_RDONLY);

	assert(fd >= 0);
	size = lseek(fd, 0, SEEK_END);
	base = mmap(NULL, size, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	assert(base != MAP_FAILED);
	pm_host_map(base, size);
	if (!strcmp(argv[1], "log"))
		read_log(write ? 0 : WL_OPEN_READ_ONLY);
	else
		read_store(write ? 0 : PS_OPEN_READ_ONLY);
	return pm_host_error();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills a formatted image with what a machine might have left there, with core's own code. `make` builds
 * this program against the core of an old commit; so the program uses only functions that core has had
 * since then.
 *
 *	make_images KIND PATH [flush]
 *
 * KIND names an image of `make`. With "flush" the store is opened as in a machine whose CPU caches are lost
 * in a power cut. No format records that, so the bytes are the same.
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

#define SECTOR		(1u << WL_SECTOR_SHIFT)
#define LINE		32u	/* of text; see fill() */

static u8 *base;
static u64 size;
static bool flush;

/* Fills @data with lines of text, each with its number: "file 1 2 v3 7..........". */
static void fill(u8 *data, u32 len, const char *what, u64 a, u64 b, u32 version)
{
	char line[2 * LINE];

	for (u32 i = 0; i < len / LINE; i++) {
		int n = snprintf(line, sizeof(line), "%s %llu %llu v%u %u", what, a, b, version, i);

		assert(n < (int)LINE);
		memset(line + n, '.', LINE - n);
		line[LINE - 1] = '\n';
		memcpy(data + i * LINE, line, LINE);
	}
}

/* --- the page store --- */

static struct ps ps;

static void open_store(void)
{
	assert(!ps_open(&ps, base, size, flush ? PS_OPEN_FLUSH_CACHES : 0));
}

static void bind_store(u8 lower_byte)
{
	struct ps_handle root = { .type = 1, .len = 8, .bytes = "the root" };
	u8 lower[PS_UUID_SIZE];

	memset(lower, lower_byte, sizeof(lower));
	ps_bind(&ps, lower, &root);
}

/* The handle's bytes depend on @file, its length and @life. */
static void add_file(u32 file, u8 type, u8 len, u8 life, u64 bytes)
{
	struct ps_handle handle = { .type = type, .len = len };

	for (u32 i = 0; i < len; i++)
		handle.bytes[i] = file * 16 + life + i;
	ps_file_create(&ps, file, &handle, bytes);
}

static void write_page(u32 page, u32 file, u64 index, u32 version)
{
	u8 data[PS_PAGE_SIZE];

	fill(data, sizeof(data), "file", file, index, version);
	ps_page_write(&ps, page, 0, data, sizeof(data));
}

static void add_page(u32 page, u32 file, u64 index, enum ps_page_state state)
{
	struct ps_move move = { .page = page, .file = file, .index = index };

	write_page(page, file, index, 1);
	ps_page_prepare(&ps, page, file, index);
	ps_pages_commit(&ps, &move, 1, state);
}

/*
 * Files 0 to 3, and the last one: live and unlinked ones, each kind of size, the shortest and longest
 * handles.
 */
static void living_files(void)
{
	u8 part[1024];

	add_file(0, 1, 8, 0, 0);
	add_page(0, 0, 0, PS_PAGE_OUT_OF_SYNC);
	add_page(1, 0, 1, PS_PAGE_CLEAN);
	add_page(2, 0, PS_MAX_INDEX - 1, PS_PAGE_OUT_OF_SYNC);

	add_file(1, 0x81, PS_HANDLE_MAX, 0, 0);
	add_page(3, 1, 0, PS_PAGE_OUT_OF_SYNC);
	add_page(4, 1, 1, PS_PAGE_OUT_OF_SYNC);
	fill(part, sizeof(part), "part of", 1, 1, 2);
	ps_page_write(&ps, 4, 96, part, sizeof(part));
	ps_fence(&ps);
	add_page(5, 1, 2, PS_PAGE_CLEAN);
	ps_page_set_state(&ps, 5, PS_PAGE_OUT_OF_SYNC);
	ps_fence(&ps);
	write_page(5, 1, 2, 2);
	ps_fence(&ps);
	ps_file_set_size(&ps, 1, 10000);
	ps_fence(&ps);

	add_file(2, 0x4e, 12, 0, 5000 | PS_SIZE_EXACT);
	add_page(6, 2, 0, PS_PAGE_OUT_OF_SYNC);
	add_page(7, 2, 1, PS_PAGE_OUT_OF_SYNC);
	ps_page_set_state(&ps, 7, PS_PAGE_CLEAN);
	ps_fence(&ps);

	add_file(3, 2, 1, 0, 1ULL << 40);
	add_page(8, 3, 0, PS_PAGE_OUT_OF_SYNC);
	ps_file_set_state(&ps, 3, PS_FILE_UNLINKED);

	add_file(ps.nr_files - 1, 1, 8, 0, 7);
	add_page(ps.nr_pages - 1, ps.nr_files - 1, 0, PS_PAGE_OUT_OF_SYNC);
}

/* Files 4 to 6: freed with pages left; freed and used again, with pages of both lives; linked again. */
static void later_lives(void)
{
	add_file(4, 1, 8, 0, 0);
	add_page(10, 4, 0, PS_PAGE_OUT_OF_SYNC);
	add_page(11, 4, 1, PS_PAGE_CLEAN);
	add_page(12, 4, 2, PS_PAGE_OUT_OF_SYNC);
	ps_file_free(&ps, 4);

	add_file(5, 1, 8, 0, 0);
	add_page(13, 5, 0, PS_PAGE_OUT_OF_SYNC);
	ps_file_set_state(&ps, 5, PS_FILE_UNLINKED);
	ps_file_free(&ps, 5);
	add_file(5, 1, 8, 1, 0);
	add_page(14, 5, 0, PS_PAGE_OUT_OF_SYNC);

	add_file(6, 1, 8, 0, 0);
	ps_file_set_state(&ps, 6, PS_FILE_UNLINKED);
	ps_file_set_state(&ps, 6, PS_FILE_LIVE);
}

/*
 * Pages 20 to 23: freed; freed and used again; prepared without a commit; written without a record. Page 12
 * was stale.
 */
static void later_pages(void)
{
	const u32 freed[] = { 20, 21 };

	add_page(20, 0, 20, PS_PAGE_OUT_OF_SYNC);
	add_page(21, 0, 21, PS_PAGE_CLEAN);
	ps_pages_free(&ps, freed, 2);
	add_page(21, 1, 21, PS_PAGE_OUT_OF_SYNC);
	add_page(12, 6, 0, PS_PAGE_OUT_OF_SYNC);
	write_page(22, 6, 1, 1);
	ps_page_prepare(&ps, 22, 6, 1);
	write_page(23, 6, 2, 1);
	ps_fence(&ps);
}

static void make_cache_used(void)
{
	open_store();
	bind_store(0x22);
	living_files();
	later_lives();
	later_pages();
}

/* The power was cut while a bound cache was bound again: only copy A is new, the first @kept bytes of it. */
static void cut_bind(u32 kept)
{
	u8 before[PS_NR_SUPERS * PS_PAGE_SIZE];

	open_store();
	bind_store(0x22);
	add_file(0, 1, 8, 0, 0);
	add_page(0, 0, 0, PS_PAGE_OUT_OF_SYNC);
	memcpy(before, base, sizeof(before));
	bind_store(0x33);
	memcpy(base + kept, before + kept, sizeof(before) - kept);
}

static void make_cache_cut(void)
{
	cut_bind(PS_PAGE_SIZE);
}

static void make_cache_torn(void)
{
	cut_bind(64);
}

#if HAS_NAMES
/* A cache with a name log; files are live, too. */
static void make_cache_names(void)
{
	open_store();
	bind_store(1);
	living_files();
	make_names(ps.names, ps.names_size, false, flush);
}

/* The same with the decisions of a replay that a power cut ended. */
static void make_cache_decided(void)
{
	open_store();
	bind_store(2);
	make_names(ps.names, ps.names_size, true, flush);
}
#endif

/* --- the write log --- */

static struct wl wl;
static u32 seq;		/* of the generation being filled */

static void open_log(u64 origin_sectors, const char *origin)
{
	u8 id[WL_ORIGIN_ID_SIZE] = "";

	memcpy(id, origin, strlen(origin));
	assert(!wl_open(&wl, base, size, flush ? WL_OPEN_FLUSH_CACHES : 0));
	if (origin_sectors)
		wl_bind(&wl, origin_sectors, id);
}

static u64 open_gen(u32 gen)
{
	u64 id = wl_next_id(&wl);

	assert(!wl_gen_open(&wl, gen, id));
	seq = 0;
	return id;
}

/* Makes an entry that is not committed yet. Only the first @part bytes of a write's data are stored. */
static void add_part(struct wl_slot *slot, enum wl_op op, u64 sector, u64 nr, u32 version, u64 part)
{
	struct wl_entry entry;
	u8 data[SECTOR];

	wl_begin(&wl, slot, op, sector, nr, seq++);
	for (u64 i = 0; op == WL_OP_WRITE && i * SECTOR < part; i++) {
		fill(data, sizeof(data), "sector", sector + i, slot->id, version);
		wl_write(&wl, slot, data, sizeof(data));
	}
	if (op != WL_OP_WRITE || part == nr * SECTOR)
		wl_end(&wl, slot, &entry);
}

static void add_entry(struct wl_slot *slot, enum wl_op op, u64 sector, u64 nr, u32 version)
{
	add_part(slot, op, sector, nr, version, nr * SECTOR);
}

static void write_one(struct wl_slot *slot, u64 sector, u64 nr, u32 version)
{
	add_entry(slot, WL_OP_WRITE, sector, nr, version);
	wl_commit(&wl, slot);
}

/* Up to d696cfe the function took the identifier from the generation's word. */
static void seal(u32 gen, u64 id)
{
	void *function = (void *)wl_gen_seal;

	if (__builtin_types_compatible_p(typeof(wl_gen_seal), void (struct wl *, u32, u64)))
		((void (*)(struct wl *, u32, u64))function)(&wl, gen, seq);
	else
		((void (*)(struct wl *, u32, u64, u64))function)(&wl, gen, id, seq);
}

/* A generation that was written back: chunks 0 and 1 have entries that must not count. */
static void written_back(u32 gen)
{
	u64 id = open_gen(gen);

	for (u32 chunk = 0; chunk < 2; chunk++) {
		struct wl_slot slot;

		wl_slot_take(&slot, gen, id, chunk);
		write_one(&slot, 8 * chunk, 8, 1);
		write_one(&slot, 100 + chunk, 1, 1);
		write_one(&slot, 200 + 8 * chunk, 8, 1);
	}
	seal(gen, id);
	wl_gen_free(&wl, gen);
}

/*
 * Two slots by turns: overwritten sectors in both, discards, zeroes, and two entries of one commit. Sealed.
 */
static void sealed(u32 gen)
{
	struct wl_slot one, two;
	u64 id = open_gen(gen);

	wl_slot_take(&one, gen, id, 0);
	wl_slot_take(&two, gen, id, 1);
	write_one(&one, 8, 8, 1);
	write_one(&two, 8, 8, 2);		/* overwrites all of it */
	write_one(&one, 10, 3, 3);		/* overwrites a part; not aligned */
	write_one(&two, 64, 16, 1);
	add_entry(&one, WL_OP_DISCARD, 64, 8, 0);
	add_entry(&one, WL_OP_ZEROES, 11, 1, 0);
	wl_commit(&wl, &one);
	write_one(&two, 65, 1, 2);		/* over the discard */
	add_entry(&two, WL_OP_DISCARD, 1000, 1048, 0);
	wl_commit(&wl, &two);
	seal(gen, id);
}

/*
 * Left open by a power cut. Chunk 0 was filled up, and chunk 1 has entries of an earlier life only. In
 * chunk 2 two entries and a part of a third were not committed; in chunk 3, none was.
 */
static void torn(u32 gen)
{
	struct wl_slot slot, other;
	u64 id = open_gen(gen);

	assert(wl.nr_chunks > 3);
	wl_slot_take(&slot, gen, id, 0);
	for (u32 i = 0; i < 3; i++)
		write_one(&slot, 8 + 4 * i, 8, 4 + i);
	write_one(&slot, 300, 6, 1);
	wl_slot_take(&slot, gen, id, 2);
	write_one(&slot, 400, 2, 1);
	add_entry(&slot, WL_OP_WRITE, 8, 8, 90);
	add_entry(&slot, WL_OP_DISCARD, 0, 2048, 0);
	add_part(&slot, WL_OP_WRITE, 400, 8, 91, 3 * SECTOR);
	wl_slot_take(&other, gen, id, 3);
	add_entry(&other, WL_OP_WRITE, 64, 4, 92);
	pm_fence();
}

static void make_log_used(void)
{
	open_log(2048, "disk-one");
	written_back(0);
	written_back(1);
	sealed(2);
	sealed(3);
	torn(0);
}

/* A log without checksums of data, whose origin has no name. */
static void make_log_plain(void)
{
	open_log(2048, "");
	written_back(0);
	sealed(1);
	torn(2);
}

/* As cut_bind(). */
static void make_log_cut(void)
{
	u8 before[WL_NR_SUPERS * WL_PAGE_SIZE];

	open_log(2048, "disk-one");
	sealed(0);
	memcpy(before, base, sizeof(before));
	open_log(4096, "disk-one");
	memcpy(base + WL_PAGE_SIZE, before + WL_PAGE_SIZE, WL_PAGE_SIZE);
}

static const struct {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{ "cache-used", make_cache_used },
	{ "cache-cut", make_cache_cut },
	{ "cache-torn", make_cache_torn },
#if HAS_NAMES
	{ "cache-names", make_cache_names },
	{ "cache-decided", make_cache_decided },
#endif
	{ "log-used", make_log_used },
	{ "log-plain", make_log_plain },
	{ "log-cut", make_log_cut },
};

int main(int argc, char **argv)
{
	int fd = open(argv[2], O_RDWR);

	assert(argc > 2 && fd >= 0);
	size = lseek(fd, 0, SEEK_END);
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert(base != MAP_FAILED);
	flush = argc > 3;
	pm_host_map(base, size);
	for (u32 i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strcmp(argv[1], kinds[i].name)) {
			kinds[i].make();
			return pm_host_error();
		}
	}
	return 1;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stores that the scenarios begin with, and what setups and operations are made of. scenarios.c has the
 * operations.
 */
#include "crash.h"
#include "names_log.h"
#include "setups.h"

#include <stdlib.h>

void create(struct ps *ps, u32 file, u32 id)
{
	struct ps_handle handle = test_handle(id);

	ps_file_create(ps, file, &handle, 0);
}

void write_page(struct ps *ps, u32 page, u32 offset, u32 len, u32 seed)
{
	u8 data[PS_PAGE_SIZE];

	test_fill(data, seed);
	ps_page_write(ps, page, offset, data + offset, len);
}

/* Moves @n pages in, to @index and following of @file; @len bytes of each are new. */
void move_in(struct ps *ps, u32 page, u32 file, u64 index, u32 n, u32 len)
{
	struct ps_move moves[4];

	for (u32 i = 0; i < n; i++) {
		moves[i] = (struct ps_move){ .page = page + i, .file = file, .index = index + i };
		write_page(ps, page + i, 0, len, 100 + page + i);
		ps_page_prepare(ps, page + i, file, index + i);
	}
	ps_pages_commit(ps, moves, n, PS_PAGE_OUT_OF_SYNC);
}

/* Files 0 and 1; of file 0, index 10 to 13 in pages 0 to 3. */
void setup_pages(struct ps *ps)
{
	create(ps, 0, 1);
	create(ps, 1, 2);
	move_in(ps, 0, 0, 10, 4, PS_PAGE_SIZE);
}

void setup_clean_page(struct ps *ps)
{
	setup_pages(ps);
	ps_page_set_state(ps, 0, PS_PAGE_CLEAN);
}

/* As setup_pages(), then file 0 has died: its pages are stale. */
void setup_stale(struct ps *ps)
{
	setup_pages(ps);
	ps_file_free(ps, 0);
}

/* And record 0 lives again, as another file. */
void setup_stale_reborn(struct ps *ps)
{
	setup_stale(ps);
	create(ps, 0, 3);
}

/* The next file with this record sets no time. */
void setup_stale_with_time(struct ps *ps)
{
	setup_pages(ps);
	ps_file_set_time(ps, 0, 1700000000123456789);
	ps_file_free(ps, 0);
}

void setup_bound(struct ps *ps)
{
	struct ps_handle root = test_handle(9);

	ps_bind(ps, (const u8 *)"lower-filesystem", &root);
}

void setup_foreign(struct ps *ps)
{
	u32 *words = sim_live();

	(void)ps;
	for (u32 i = 0; i < 65536 / sizeof(*words); i++)
		words[i] = sim_random(~0u) | 1;
	memcpy(sim_durable(), words, TEST_SIZE);
}

/* A store whose geometry is another: its data lie where tables are going to be. */
void setup_old_store(struct ps *ps)
{
	test_format(TEST_FILES);
	if (!ps_open(ps, sim_live(), TEST_SIZE, 0))
		setup_pages(ps);
}

/* A store with pages and a name log, which holds a committed record. */
void setup_names(struct ps *ps)
{
	u32 flags = ps->flush_caches ? PS_OPEN_FLUSH_CACHES : 0;
	struct nl_change change = names_change(NL_LINK, 1);
	struct nl nl;

	test_format_names(TEST_FILES, SETUP_NAMES_SIZE);
	if (ps_open(ps, sim_live(), TEST_SIZE, flags))
		abort();
	setup_pages(ps);
	names_forget();
	if (nl_open(&nl, ps->names, ps->names_size, NL_OPEN_FLUSH_CACHES) || nl_empty(&nl) ||
	    nl_commit(&nl, names_append(&nl, &change)))
		abort();
}

static void setup_bad_copy(u32 copy)
{
	u8 *image = sim_live();

	image[copy * PS_PAGE_SIZE + 40] ^= 1;
	memcpy(sim_durable(), image, TEST_SIZE);
}

void setup_bad_a(struct ps *ps)
{
	setup_pages(ps);
	sim_settle();
	setup_bad_copy(0);
}

void setup_bad_b(struct ps *ps)
{
	setup_pages(ps);
	sim_settle();
	setup_bad_copy(1);
}

void setup_names_bad_a(struct ps *ps)
{
	setup_names(ps);
	sim_settle();
	setup_bad_copy(0);
}

void setup_names_bad_b(struct ps *ps)
{
	setup_names(ps);
	sim_settle();
	setup_bad_copy(1);
}

/* File record 1 in its second life, with two pages, says that it is in its first. */
void setup_damaged_file(struct ps *ps)
{
	struct ps_file_onmedia *rec = &ps->files[1];

	setup_pages(ps);
	ps_file_free(ps, 1);
	create(ps, 1, 4);
	move_in(ps, 4, 1, 20, 2, PS_PAGE_SIZE);
	sim_settle();
	rec->commit = cpu_to_le64(le64_to_cpu(rec->commit) - (1ULL << PS_FILE_GEN_SHIFT));
	memcpy(sim_durable(), sim_live(), TEST_SIZE);
}

/* Page records 1 and 2 of file 0. */
void setup_damaged_pages(struct ps *ps)
{
	setup_pages(ps);
	sim_settle();
	ps->pages[1].check ^= cpu_to_le64(1ULL << 40);
	ps->pages[2].commit ^= cpu_to_le64(1ULL << 60);
	memcpy(sim_durable(), sim_live(), TEST_SIZE);
}

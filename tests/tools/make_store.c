// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes an image or a device hold what a crash might have left there, with core's own code:
 *
 *	make_store PATH COMMAND...
 *	  bind                    bind the store to lower file system 22…22
 *	  file N SIZE STATE       file record N; STATE live or unlinked
 *	  page N FILE INDEX STATE page record N; STATE out-of-sync or clean
 *	  names COMMITTED TAIL    so many records in the name log that are committed, and behind them so many that aren't
 *	  offsets                 print where the tables are
 *	  names-offsets           print where the name log, its words and its first committed record are
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../core/names/names.h"
#include "../../core/pm/host.h"
#include "../../core/store/store.h"

static struct ps open_store(const char *path)
{
	int fd = open(path, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	struct ps ps;
	void *base;

	assert(size > 0);
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert(base != MAP_FAILED);
	pm_host_map(base, size);
	assert(!ps_open(&ps, base, size, 0));
	return ps;
}

static void bind_store(struct ps *ps)
{
	struct ps_handle root = { .type = 1, .len = 8, .bytes = "the root" };
	u8 lower[PS_UUID_SIZE];

	memset(lower, 0x22, sizeof(lower));
	ps_bind(ps, lower, &root);
}

static void add_file(struct ps *ps, char **argv)
{
	struct ps_handle handle = { .type = 1, .len = 8 };
	u32 file = atoi(argv[0]);

	memcpy(handle.bytes, &file, sizeof(file));
	ps_file_create(ps, file, &handle, strtoull(argv[1], NULL, 0));
	if (!strcmp(argv[2], "unlinked"))
		ps_file_set_state(ps, file, PS_FILE_UNLINKED);
}

static void add_page(struct ps *ps, char **argv)
{
	struct ps_move move = { .page = atoi(argv[0]), .file = atoi(argv[1]), .index = atoll(argv[2]) };

	ps_page_zero(ps, move.page, 0, PS_PAGE_SIZE);
	ps_page_prepare(ps, move.page, move.file, move.index);
	ps_pages_commit(ps, &move, 1,
			strcmp(argv[3], "clean") ? PS_PAGE_OUT_OF_SYNC : PS_PAGE_CLEAN);
}

/* Returns where the record ends. */
static u64 append_name(struct nl *nl)
{
	struct nl_identity id = { .type = 1, .len = 8, .handle = "a handle" };
	struct nl_change change = {
		.kind = NL_LINK, .has = 1u << NL_F_DIR | 1u << NL_F_OBJECT | 1u << NL_F_NAME, .dir = { .id = id },
		.object = id, .name = { .bytes = (const u8 *)"name", .len = 4 },
	};
	int lines = nl_change_lines(&change);
	struct nl_place place;

	assert(lines > 0 && !nl_reserve(nl, &place, lines));
	nl_take(nl, &place, lines, false);
	nl_write(nl, &place, &change);
	nl_done(nl, &place);
	return place.end;
}

static void add_names(const struct ps *ps, int committed, int tail)
{
	struct nl nl;
	u64 end = 0;

	assert(!nl_open(&nl, ps->names, ps->names_size, 0) && !nl_empty(&nl));
	while (committed--)
		end = append_name(&nl);
	assert(!nl_commit(&nl, end));
	while (tail--)
		append_name(&nl);
}

static void print_names(const struct ps *ps)
{
	unsigned long long region = (u8 *)ps->names - ps->base;
	struct nl nl;

	assert(!nl_open(&nl, ps->names, ps->names_size, NL_OPEN_READ_ONLY));
	printf("%llu %llu %llu\n", region, region + ((u8 *)nl.words - nl.base),
	       region + (nl.ring - nl.base) + nl.trim % nl.nr_lines * NL_LINE);
}

int main(int argc, char **argv)
{
	struct ps ps = open_store(argv[1]);

	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "bind")) {
			bind_store(&ps);
		} else if (!strcmp(argv[i], "file")) {
			add_file(&ps, argv + i + 1);
			i += 3;
		} else if (!strcmp(argv[i], "page")) {
			add_page(&ps, argv + i + 1);
			i += 4;
		} else if (!strcmp(argv[i], "names")) {
			add_names(&ps, atoi(argv[i + 1]), atoi(argv[i + 2]));
			i += 2;
		} else if (!strcmp(argv[i], "names-offsets")) {
			print_names(&ps);
		} else {
			printf("%llu %llu\n",
			       (unsigned long long)le64_to_cpu(ps.super.file_table),
			       (unsigned long long)le64_to_cpu(ps.super.page_table));
		}
	}
	return pm_host_error();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a write log hold what a crash might have left there, with core's own code:
 *
 *	make_log PATH COMMAND...
 *	  bind SECTORS NAME       bind the log to an origin; "-": without a name
 *	  open N                  open generation N under the next identifier
 *	  write SECTOR NR         log a write, in chunk 0 of the generation opened last
 *	  discard SECTOR NR       the same for a discard
 *	  seal N ENTRIES          seal generation N
 *	  free N                  free generation N
 *	  offsets                 print where table, data, and chunk 0's header in generation 0 are
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../core/pm/host.h"
#include "../../core/log/log.h"

static struct wl wl;
static struct wl_slot slot;
static u32 seq;

static void open_log(const char *path)
{
	int fd = open(path, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	void *base;

	assert(size > 0);
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert(base != MAP_FAILED);
	pm_host_map(base, size);
	assert(!wl_open(&wl, base, size, 0));
}

static void bind_log(char **argv)
{
	u8 id[WL_ORIGIN_ID_SIZE] = "";

	if (strcmp(argv[1], "-"))
		memcpy(id, argv[1], strlen(argv[1]));
	wl_bind(&wl, strtoull(argv[0], NULL, 0), id);
}

static void open_gen(char **argv)
{
	u64 id = wl_next_id(&wl);

	assert(!wl_gen_open(&wl, atoi(argv[0]), id));
	wl_slot_take(&slot, atoi(argv[0]), id, 0);
	seq = 0;
}

static void log_entry(enum wl_op op, char **argv)
{
	u64 sector = strtoull(argv[0], NULL, 0), nr = strtoull(argv[1], NULL, 0);
	struct wl_entry entry;
	u8 data[512];

	memset(data, (int)sector, sizeof(data));
	assert(wl_slot_space(&wl, &slot, nr << 9) == nr << 9 || op != WL_OP_WRITE);
	wl_begin(&wl, &slot, op, sector, nr, seq++);
	for (u64 i = 0; op == WL_OP_WRITE && i < nr; i++)
		wl_write(&wl, &slot, data, sizeof(data));
	wl_end(&wl, &slot, &entry);
	wl_commit(&wl, &slot);
}

static void seal_gen(char **argv)
{
	struct wl_gen_info info;

	assert(!wl_gen_read(&wl, atoi(argv[0]), &info));
	wl_gen_seal(&wl, atoi(argv[0]), info.id, atoi(argv[1]));
}

/* How many words the command at @argv takes. */
static int run(char **argv)
{
	if (!strcmp(*argv, "bind"))
		return bind_log(argv + 1), 3;
	if (!strcmp(*argv, "open"))
		return open_gen(argv + 1), 2;
	if (!strcmp(*argv, "write"))
		return log_entry(WL_OP_WRITE, argv + 1), 3;
	if (!strcmp(*argv, "discard"))
		return log_entry(WL_OP_DISCARD, argv + 1), 3;
	if (!strcmp(*argv, "seal"))
		return seal_gen(argv + 1), 3;
	if (!strcmp(*argv, "free"))
		return wl_gen_free(&wl, atoi(argv[1])), 2;
	assert(!strcmp(*argv, "offsets"));
	printf("%td %td %td\n", (u8 *)wl.gens - wl.base, wl.data - wl.base,
	       wl.data - wl.base + wl.chunk_size - WL_LINE);
	return 1;
}

int main(int argc, char **argv)
{
	open_log(argv[1]);
	for (int i = 2; i < argc;)
		i += run(argv + i);
	assert(!pm_host_error());
	return 0;
}

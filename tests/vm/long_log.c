// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a long name log that storage lacks altogether, with core's own code, and times what recovery concludes from it:
 *
 *	long_log RECORDS DIRS                             in memory; prints milliseconds
 *	long_log RECORDS DIRS FOLDER                      no log: makes the changes in a folder, and syncs it
 *	long_log RECORDS DIRS CACHE TYPE HANDLE COUNTER   in a cache that was just formatted, for a lower root directory
 *
 * The records make directories in the root, then files in them in turn, each under another name at first. Without
 * directories, the files are in the root.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../core/names/layout.h"
#include "../../core/names/replay.h"
#include "../../core/pm/host.h"
#include "../../core/store/store.h"

#define MAX_DIRS	100
#define REGION	(64u << 20)

static struct nl nl;
static struct nl_record record, other;
static struct nl_identity dirs[MAX_DIRS + 1];	/* the first is the root */
static u64 counters[MAX_DIRS + 1];
static u32 nr_dirs;				/* below the root */

static void append(struct nl_change *change)
{
	int lines = nl_change_lines(change);
	struct nl_place place;

	assert(lines > 0 && !nl_reserve(&nl, &place, lines));
	nl_take(&nl, &place, lines, false);
	if (change->kind == NL_CREATE)
		change->object.birth = place.start;
	nl_write(&nl, &place, change);
	nl_done(&nl, &place);
}

/* The change of a name in a directory. */
static struct nl_change change_of(enum nl_kind kind, const struct nl_identity *dir, u64 *before, char *name)
{
	return (struct nl_change){
		.kind = kind, .has = NL_HAS(DIR) | NL_HAS(OBJECT) | NL_HAS(NAME),
		.dir = { .id = *dir, .count = { .before = (*before)++, .ctime = 1000000000 + *before } },
		.name = { .bytes = (u8 *)name, .len = strlen(name) },
	};
}

static struct nl_identity create(const struct nl_identity *dir, u64 *before, char *name, u32 number, u32 mode)
{
	struct nl_change change = change_of(NL_CREATE, dir, before, name);

	change.has |= NL_HAS(ATTR);
	if (mode & NL_MODE_DIR) {
		change.has |= NL_HAS(SELF);
		change.self = (struct nl_count){ 1, 1000000000 };
	}
	change.attr = (struct nl_attr){
		.mask = NL_ATTR_MODE | NL_ATTR_UID | NL_ATTR_GID | NL_ATTR_MTIME, .mode = mode, .uid = 17, .gid = 18,
		.mtime = 1000000000,
	};
	change.object = (struct nl_identity){ .btime = 1 + number, .type = 1, .len = 8 };
	memcpy(change.object.handle, &number, sizeof(number));
	append(&change);
	return change.object;
}

static void fill(u32 records)
{
	char name[32], final[32];
	u32 i;

	for (i = 1; i <= nr_dirs; i++) {
		snprintf(name, sizeof(name), "d%u", i - 1);
		dirs[i] = create(&dirs[0], &counters[0], name, 1000 + i, 0040755);
		counters[i] = 1;
	}
	for (i = 0; i < (records - nr_dirs) / 2; i++) {
		u32 dir = nr_dirs ? 1 + i % nr_dirs : 0;
		struct nl_identity file;
		struct nl_change change;

		snprintf(name, sizeof(name), "tmp%u", i);
		snprintf(final, sizeof(final), "f%u", i);
		file = create(&dirs[dir], &counters[dir], name, 2000 + i, 0100640);
		change = change_of(NL_RENAME, &dirs[dir], &counters[dir], name);
		change.object = file;
		change.has |= NL_HAS(NAME2);
		change.name2 = (struct nl_text){ .bytes = (u8 *)final, .len = strlen(final) };
		append(&change);
	}
	assert(!nl_commit(&nl, nl_next(&nl)));
}

/* The same changes, without Forebay. */
static void change_plainly(const char *folder, u32 records)
{
	static const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1 } };
	char name[32], final[32];
	int fd, ok;
	u32 i;

	ok = !chdir(folder);
	for (i = 0; i < nr_dirs; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		ok = ok && !mkdir(name, 0755) && !chown(name, 17, 18);
	}
	for (i = 0; ok && i < (records - nr_dirs) / 2; i++) {
		u32 len = nr_dirs ? snprintf(name, sizeof(name), "d%u/", i % nr_dirs) : 0;

		memcpy(final, name, len);
		snprintf(name + len, sizeof(name) - len, "tmp%u", i);
		snprintf(final + len, sizeof(final) - len, "f%u", i);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0640);
		ok = fd >= 0 && !fchown(fd, 17, 18) && !futimens(fd, times) && !close(fd) && !rename(name, final);
	}
	fd = open(".", O_RDONLY);
	assert(ok && fd >= 0 && !syncfs(fd));
}

static int look(void *arg, const struct nl_identity *dir, u64 *count, s64 *ctime)
{
	(void)arg, (void)dir;
	*count = 1;
	*ctime = 1;
	return 0;
}

static u32 power_of_two(u64 least)
{
	u32 size = 1;

	while (size < least)
		size *= 2;
	return size;
}

static void *zeros(u64 size)
{
	void *memory = calloc(1, size);

	assert(memory);
	return memory;
}

static double tell(const char *what, double since)
{
	struct timespec now;
	double ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = now.tv_sec * 1e3 + now.tv_nsec / 1e6;
	if (what)
		printf("%s %.0f ms\n", what, ms - since);
	return ms;
}

/* What fs/replay does with core/names, without the lower file system. */
static void conclude(void)
{
	struct nl_judge judge = { .nl = &nl, .record = &record, .look = look, .bits = zeros(nl_bits_size(&nl)) };
	struct nl_bind bind = { .nl = &nl, .record = &record, .other = &other };
	double since = tell(NULL, 0);
	struct nl_replay_sizes sizes;
	struct nl_binding binding;
	u64 steps = 0;

	assert(!nl_replay_sizes(&nl, &record, &sizes));
	since = tell("sizes", since);
	judge.nodes.max = sizes.nodes;
	judge.nodes.nr_slots = power_of_two(2 * (u64)sizes.nodes);
	judge.nodes.nodes = zeros(sizes.nodes * sizeof(struct nl_node));
	judge.nodes.slots = zeros(judge.nodes.nr_slots * sizeof(u32));
	assert(!nl_judge(&judge) && !judge.verdict);
	since = tell("judge", since);
	assert(!nl_decide(&nl, judge.bits, judge.end));
	since = tell("decide", since);
	bind.nodes = judge.nodes;
	bind.nodes.nr = 0;
	memset(bind.nodes.slots, 0, bind.nodes.nr_slots * sizeof(u32));
	bind.nr_names = power_of_two(2 * (u64)sizes.names + 2);
	bind.names = zeros(bind.nr_names * sizeof(struct nl_name));
	assert(!nl_bind_start(&bind));
	since = tell("bind", since);
	while (nl_bind_next(&bind, &binding) > 0)
		steps++;
	tell("steps", since);
	printf("%llu records, %llu steps, %llu KiB of tables\n", (unsigned long long)sizes.records, (unsigned long long)steps,
	       (unsigned long long)(sizes.nodes * sizeof(struct nl_node) + bind.nodes.nr_slots * sizeof(u32) +
				    bind.nr_names * sizeof(struct nl_name)) >> 10);
}

static void open_memory(void)
{
	static const struct nl_format_options opt = { .uuid = "long" };
	void *region = aligned_alloc(4096, REGION);

	memset(region, 0, REGION);
	dirs[0] = (struct nl_identity){ .type = 1, .len = 8, .handle = "root" };
	counters[0] = 1;
	pm_host_map(region, REGION);
	assert(!nl_format(region, REGION, &opt) && !nl_open(&nl, region, REGION, 0) && !nl_empty(&nl));
}

static void open_cache(char **argv)
{
	int fd = open(argv[0], O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const char *hex = argv[2];
	struct ps ps;

	assert(size > 0 && base != MAP_FAILED);
	pm_host_map(base, size);
	dirs[0].type = atoi(argv[1]);
	for (; sscanf(hex, "%2hhx", &dirs[0].handle[dirs[0].len]) == 1; hex += 2)
		dirs[0].len++;
	counters[0] = strtoull(argv[3], NULL, 0);
	assert(!ps_open(&ps, base, size, 0) && !nl_open(&nl, ps.names, ps.names_size, 0) && !nl_empty(&nl));
}

int main(int argc, char **argv)
{
	u32 records = argc > 2 ? atoi(argv[1]) : 0;

	assert(argc == 3 || argc == 4 || argc == 7);
	nr_dirs = atoi(argv[2]);
	assert(nr_dirs <= MAX_DIRS);
	if (argc == 4) {
		change_plainly(argv[3], records);
		return 0;
	}
	if (argc == 3)
		open_memory();
	else
		open_cache(argv + 3);
	fill(records);
	if (argc == 3)
		conclude();
	assert(!pm_host_error());
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that other processes change meanwhile. A file of one other process is only read here; every process
 * writes the shared files. trespass.c has the calls that another user has no permission for.
 *
 * If a store to a mapping makes a page dirty while a direct write to that page is under way, Linux gives up, and
 * the next sync of the file fails with EIO: on ext4 and xfs alone, too. So in half of the runs one shared file gets
 * no direct writes, and the others get no stores; there an EIO is a violation. In the other half both come at
 * once, to look for calls that hang. EIO is then allowed to calls on shared files, and to root's, which sync all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "others.h"

#define SLOTS	4

static struct other others[SLOTS];

/* A mutex of all processes, in a file, and what it protects. */
static struct locked {
	pthread_mutex_t mutex;
	volatile uint64_t count;
} *locked;

static _Alignas(4096) uint8_t data[FILE_SIZE + PAGE];

static void path_of(const char *name, char *path, size_t length)
{
	snprintf(path, length, "%s/%s", mount_point, name);
}

/* Called as root, before the users' processes start. */
void make_shared_files(void)
{
	pthread_mutexattr_t attributes;
	char name[16], path[256];
	struct locked *fresh;
	int fd;

	for (int i = 0; i < SHARED_FILES; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		path_of(name, path, sizeof(path));
		fd = open(path, O_RDWR | O_CREAT, 0666);
		if (fd < 0 || fchown(fd, i % 2 ? USER_B : USER_A, 0))
			perror(path);
		close(fd);
	}
	path_of("mutex", path, sizeof(path));
	fd = open(path, O_RDWR | O_CREAT, 0666);
	if (fd < 0 || ftruncate(fd, PAGE))
		perror(path);
	fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&fresh->mutex, &attributes);
	munmap(fresh, PAGE);
	close(fd);
}

static void close_other(struct other *other)
{
	if (other->map)
		CALL("munmap", munmap(other->map, other->pages * PAGE), NEVER);
	if (other->tag) {
		close(other->fd);
		close(other->direct);
	}
	*other = (struct other) { 0 };
}

static void open_other(void)
{
	struct other *other = &others[draw(SLOTS)];
	int number = draw(PROCESSES), nr = draw(OWN_FILES), flags = O_RDONLY;

	close_other(other);
	other->shared = chance(3);
	if (other->shared) {
		number = draw(SHARED_FILES);
		snprintf(other->name, sizeof(other->name), "s%d", number);
		flags = O_RDWR;
	} else {
		if (number == me->number)
			return;
		other->foreign = shared->actor[number].uid != me->uid;
		snprintf(other->name, sizeof(other->name), "%s", models[number][nr]->name);
		if (!other->name[0])		/* not made yet */
			return;
	}
	path_of(other->name, other->path, sizeof(other->path));
	note("open %s", other->name);
	other->fd = CALL("open of another's", open(other->path, flags), MAY(ENOENT, EACCES));
	other->direct = CALL("direct open of another's", open(other->path, flags | O_DIRECT), MAY(ENOENT, EACCES));
	if (other->foreign && nr && other->fd >= 0)
		violation("trespass", "%s could be opened", other->name);
	if (other->fd < 0 || other->direct < 0) {
		close(other->fd);
		close(other->direct);
		return;
	}
	other->tag = other->shared ? TAG_OF_SHARED(number) : TAG_OF_PROCESS(number);
}

struct other *some_other(void)
{
	struct other *other = &others[draw(SLOTS)];

	if (!other->tag)
		return NULL;
	may_have_collided |= shared->collide && other->shared;
	return other;
}

/* Whether a shared file gets direct writes; otherwise it gets stores to mappings. */
static bool gets_direct_writes(const struct other *other)
{
	return other->tag != TAG_OF_SHARED(0);
}

static struct other *some_shared(void)
{
	struct other *other = some_other();

	return other && other->shared ? other : NULL;
}

static void read_other(void)
{
	struct other *other = some_other();
	long offset, length, got;

	if (!other)
		return;
	choose(FILE_SIZE, FILE_SIZE, &offset, &length);
	note("read %s %ld %ld", other->name, offset, length);
	if (chance(3)) {
		offset &= -512L;
		length = (length + 511) & -512L;
		/* ext4, xfs: EIO if a mapped store reserves blocks just as a direct read looks them up. */
		got = CALL("direct pread of another's", pread(other->direct, data, length, offset), MAY(EIO));
	} else {
		got = CALL("pread of another's", pread(other->fd, data, length, offset), NEVER);
	}
	if (got > 0)
		check_tags(1u << other->tag, other->name, "read", offset, data, got);
}

static void map_other(void)
{
	struct other *other = some_other();
	unsigned int how = draw(6);
	int flags = how < 2 && !plain ? MAP_SHARED_VALIDATE | MAP_SYNC : how == 2 ? MAP_PRIVATE : MAP_SHARED;
	char *address;

	if (!other)
		return;
	if (other->map)
		CALL("munmap", munmap(other->map, other->pages * PAGE), NEVER);
	other->map = NULL;
	other->first = draw(FILE_PAGES);
	other->pages = 1 + draw(FILE_PAGES - other->first);
	other->private = how == 2;
	other->writable = other->shared && how != 2 && chance(2);
	note("map %s page %ld + %ld, flags %x%s", other->name, other->first, other->pages, flags, other->writable ? ", to be written" : "");
	call("mmap of another's");
	address = mmap(NULL, other->pages * PAGE, PROT_READ | (other->writable ? PROT_WRITE : 0), flags | (how == 3 ? MAP_POPULATE : 0),
		       other->fd, other->first * PAGE);
	/* The file may have lost its name. */
	if (expect("mmap of another's", address == MAP_FAILED ? -1 : 0, MAY(EOPNOTSUPP, ENOENT, EACCES, EPERM)) >= 0)
		other->map = address;
}

static bool is_in_file(const struct other *other, long at)
{
	struct stat stat;

	return !fstat(other->fd, &stat) && stat.st_size > at;
}

/* Another process that truncates the file causes SIGBUS. Inside the file the access must succeed soon. */
static void no_access(struct other *other, long at)
{
	int tries = 0;

	call("access to another's again after SIGBUS");
	while (tries < 30 && !touch_guarded(other->map + at)) {
		if (!is_in_file(other, other->first * PAGE + at))
			break;
		tries++;
		usleep(100000);
	}
	call("");
	if (tries == 30)
		violation("SIGBUS", "access to %s byte %ld, which is in the file", other->name, other->first * PAGE + at);
}

static void load_other(void)
{
	struct other *other = some_other();
	long at, length;

	if (!other || !other->map)
		return;
	choose(other->pages * PAGE, 4 * PAGE, &at, &length);
	if (!is_in_file(other, other->first * PAGE + at + length - 1))
		return;
	note("load %s %ld %ld", other->name, other->first * PAGE + at, length);
	call("load of another's");
	if (copy_guarded(data, other->map + at, length))
		check_tags(1u << other->tag, other->name, "mapping", other->first * PAGE + at, data, length);
	else
		no_access(other, at);
}

static void store_shared(void)
{
	struct other *other = some_shared();
	long at, length;

	if (!other || !other->map || !other->writable || (gets_direct_writes(other) && !shared->collide))
		return;
	choose(other->pages * PAGE, 3 * PAGE, &at, &length);
	if (!is_in_file(other, other->first * PAGE + at + length - 1))
		return;
	fill(other->tag, data, length);
	note("store %s %ld %ld", other->name, other->first * PAGE + at, length);
	call("store to a shared file");
	if (!copy_guarded(other->map + at, data, length))
		no_access(other, at);
}

static void write_shared(void)
{
	struct other *other = some_shared();
	long offset, length, result;

	if (!other)
		return;
	choose(FILE_SIZE, 8 * PAGE, &offset, &length);
	if (chance(3) && (gets_direct_writes(other) || shared->collide)) {
		offset &= -512L;
		length = (length + 511) & -512L;
		fill(other->tag, data, length);
		note("direct write %s %ld %ld", other->name, offset, length);
		result = CALL("direct pwrite to a shared file", DIRECT(pwrite(other->direct, data, length, offset)), NEVER);
	} else {
		fill(other->tag, data, length);
		note("write %s %ld %ld", other->name, offset, length);
		result = CALL("pwrite to a shared file", pwrite(other->fd, data, length, offset), NEVER);
	}
	if (result >= 0 && result != length)
		violation("short", "write to %s at %ld: %ld of %ld bytes", other->name, offset, result, length);
}

static void change_shared(void)
{
	static const int modes[] = { 0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE, FALLOC_FL_COLLAPSE_RANGE,
				     FALLOC_FL_INSERT_RANGE };
	struct other *other = some_shared();
	long offset, length, from;
	int mode = draw(7);

	if (!other)
		return;
	choose(FILE_SIZE, 8 * PAGE, &offset, &length);
	note("change %s %ld %ld: %d", other->name, offset, length, mode);
	if (mode == 5) {
		CALL("ftruncate of a shared file", ftruncate(other->fd, offset), NEVER);
	} else if (mode == 6) {
		from = draw(FILE_SIZE);
		CALL("copy_file_range in a shared file", copy_file_range(other->fd, &from, other->fd, &offset, length, 0), MAY(EINVAL));
	} else {
		if (mode >= 3) {
			offset &= -PAGE;
			length = (length + PAGE - 1) & -PAGE;
		}
		CALL("fallocate of a shared file", fallocate(other->fd, modes[mode], offset, length), MAY(EOPNOTSUPP, EINVAL));
	}
	/* Inserted ranges make the file longer each time. */
	if (is_in_file(other, 2 * FILE_SIZE))
		CALL("ftruncate of a shared file", ftruncate(other->fd, FILE_SIZE), NEVER);
}

static void hold_other(void)
{
	struct other *other = some_other();
	long offset, length;

	if (!other)
		return;
	choose(FILE_SIZE, 16 * PAGE, &offset, &length);
	note("hold %s %ld %ld", other->name, offset, length);
	if (chance(2) || !other->map) {
		hold_file(other->fd, offset, length, 1u << other->tag, other->name);
	} else {
		if (length > other->pages * PAGE)
			length = other->pages * PAGE;
		hold_memory(other->map, length, 1u << other->tag, other->name);
	}
}

/* Takes a mutex that lies in a file of its own, as LMDB does. */
static void lock_mutex(void)
{
	uint64_t count;
	int fd;

	note("mutex");
	call("pthread_mutex_lock");
	pthread_mutex_lock(&locked->mutex);
	call("");
	count = ++locked->count;
	usleep(draw(2000));
	if (count != locked->count)
		violation("mutex", "another process has locked it, too");
	pthread_mutex_unlock(&locked->mutex);
	if (chance(6)) {
		char path[256];

		path_of("mutex", path, sizeof(path));
		fd = open(path, O_RDONLY);
		CALL("fsync of a file with a mutex", fsync(fd), NEVER);
		close(fd);
	}
}

void begin_others(void)
{
	char path[256];
	int fd;

	path_of("mutex", path, sizeof(path));
	fd = open(path, O_RDWR);
	locked = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || locked == MAP_FAILED) {
		perror(path);
		_exit(2);
	}
	close(fd);
}

void end_others(void)
{
	for (int i = 0; i < SLOTS; i++)
		close_other(&others[i]);
}

const struct operation other_operations[] = {
	{ "open_other", open_other, 10 }, { "read_other", read_other, 15 }, { "map_other", map_other, 6 }, { "load_other", load_other, 15 },
	{ "store_shared", store_shared, 8 }, { "write_shared", write_shared, 10 }, { "change_shared", change_shared, 4 },
	{ "hold_other", hold_other, 6 }, { "press", press_on, 10 }, { "trespass", trespass, 4 }, { "mutex", lock_mutex, 4 },
	{ NULL, NULL, 0 }
};

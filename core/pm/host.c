// SPDX-License-Identifier: GPL-2.0-only
/*
 * The primitives of env.h for a program, over a shared mapping of a block device or a file. They are
 * plain stores, with msync() as the fence: so the order of core/ is the order on the device.
 *
 * An access to a page that the medium has lost, in part or whole, ends in SIGBUS. pm_read() then reads the
 * readable sectors past the page cache, as the modules do. A store first has the page rewritten by
 * pwrite(), which clears its bad blocks.
 *
 * There is one mapping at a time, used by one thread. Core functions return no error of a store or of a
 * fence, so the first one is kept for pm_host_error(). Nothing is stored after it.
 *
 * Linked into the forebay command. The crash tests use tests/core/pm_sim.c instead.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "host.h"
#include "supers.h"

#define PAGE		4096u
#define SECTOR		512u
#define LOST_BYTE	0xff	/* makes a record that was lost an invalid one, not a free one */
#define MAX_REPLACED	256

static struct {
	u8 *base;
	size_t size;
	size_t dirty_from, dirty_to;	/* since the last fence; empty: from >= to */
	int error;
} map;

static struct {
	int fd;				/* of the device; -1: not known */
	bool in_file;			/* it is an image: nothing stores past its page cache */
	int direct;			/* the same with O_DIRECT; -1: not open */
	void (*unexpected)(void);
	atomic_bool active;
	sigjmp_buf lost;
	size_t replaced[MAX_REPLACED];	/* offsets of pages that are mapped as private copies */
	size_t nr_replaced;
} guard = { .fd = -1, .direct = -1 };

/**
 * pm_host_map - set the mapping that core functions read and write
 * @base: from mmap(), MAP_SHARED, and writable if anything is written
 * @size: bytes
 */
void pm_host_map(void *base, size_t size)
{
	map.base = base;
	map.size = size;
	map.dirty_from = size;
	map.dirty_to = 0;
	map.error = 0;
}

static int direct_fd(void)
{
	char path[32];

	if (guard.direct < 0 && guard.fd >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", guard.fd);
		guard.direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	}
	return guard.direct;
}

/* Reads the sector at @offset of the device past the page cache, which fails in whole pages. */
static bool read_sector(void *sector, size_t offset)
{
	int fd = direct_fd();

	return fd >= 0 && pread(fd, sector, SECTOR, offset) == SECTOR;
}

/* What can still be read of a page. Lost sectors of superblocks become zero, others LOST_BYTE. */
static void read_rest(u8 page[PAGE], size_t offset)
{
	size_t at;

	for (at = 0; at < PAGE; at += SECTOR)
		if (!read_sector(page + at, offset + at))
			memset(page + at, offset < SUPERS_SIZE ? 0 : LOST_BYTE, SECTOR);
}

/* Maps a private copy in place of a page that is lost in part. Core loads some words without pm_read(). */
static bool replace(const void *addr)
{
	static u8 page[PAGE] __attribute((aligned(PAGE)));
	size_t offset = (const u8 *)addr - map.base;

	if ((const u8 *)addr < map.base || offset >= map.size || guard.nr_replaced == MAX_REPLACED)
		return false;
	offset -= offset % PAGE;
	read_rest(page, offset);
	if (mmap(map.base + offset, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	memcpy(map.base + offset, page, PAGE);
	guard.replaced[guard.nr_replaced++] = offset;
	return true;
}

static bool is_replaced(const void *addr, size_t len)
{
	size_t offset = (const u8 *)addr - map.base, i;

	for (i = 0; i < guard.nr_replaced; i++)
		if (guard.replaced[i] < offset + len && offset < guard.replaced[i] + PAGE)
			return true;
	return false;
}

static void bus_error(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (guard.active)
		siglongjmp(guard.lost, 1);
	if (replace(info->si_addr))
		return;
	guard.unexpected();
	signal(number, SIG_DFL);
}

/**
 * pm_host_guard - survive bad blocks in the mapping
 * @fd: what is mapped; -1: end this
 * @unexpected: called in the signal handler if the program can't go on
 *
 * Without this call, an access to a bad block kills the program.
 */
void pm_host_guard(int fd, void (*unexpected)(void))
{
	/* The handler leaves by siglongjmp(), with the signal unblocked. */
	struct sigaction action = { .sa_sigaction = bus_error, .sa_flags = SA_NODEFER | SA_SIGINFO };
	struct stat st;

	if (guard.direct >= 0)
		close(guard.direct);
	guard.fd = fd;
	guard.in_file = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
	guard.direct = -1;
	guard.unexpected = unexpected;
	guard.nr_replaced = 0;
	if (fd < 0)
		action = (struct sigaction){ .sa_handler = SIG_DFL };
	sigaction(SIGBUS, &action, NULL);
}

/**
 * pm_host_error - the first error of a store or of a fence
 *
 * Return: 0, or the errno of the first one since pm_host_map().
 */
int pm_host_error(void)
{
	return map.error;
}

static void mark_dirty(const void *addr, size_t len)
{
	size_t from = (const u8 *)addr - map.base;

	map.dirty_from = min_t(size_t, map.dirty_from, from);
	map.dirty_to = max_t(size_t, map.dirty_to, from + len);
}

/* False: one of the two is lost or can't be stored to; then a part may have been copied. */
static bool copy(void *to, const void *from, size_t len)
{
	if (guard.nr_replaced && (is_replaced(to, len) || is_replaced(from, len)))
		return false;
	if (sigsetjmp(guard.lost, 0)) {
		guard.active = false;
		return false;
	}
	guard.active = true;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(to, from, len);
	atomic_signal_fence(memory_order_seq_cst);
	guard.active = false;
	return true;
}

static bool read_sectors(void *to, size_t offset, size_t len)
{
	u8 sector[SECTOR] __attribute((aligned(PAGE)));
	size_t part;

	for (; len; to = (u8 *)to + part, offset += part, len -= part) {
		part = min_t(size_t, len, SECTOR - offset % SECTOR);
		if (!read_sector(sector, offset - offset % SECTOR))
			return false;
		memcpy(to, sector + offset % SECTOR, part);
	}
	return true;
}

bool pm_read(void *to, const void *from, size_t len)
{
	size_t offset = (const u8 *)from - map.base;

	if (copy(to, from, len))
		return true;
	return (const u8 *)from >= map.base && offset < map.size && read_sectors(to, offset, len);
}

static bool map_again(size_t offset)
{
	size_t i;

	if (!is_replaced(map.base + offset, PAGE))
		return true;
	if (mmap(map.base + offset, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, guard.fd,
		 offset) == MAP_FAILED)
		return false;
	for (i = 0; guard.replaced[i] != offset; i++)
		;
	guard.replaced[i] = guard.replaced[--guard.nr_replaced];
	return true;
}

/* Writes a whole page by a call, with what can still be read of it. */
static bool rewrite_page(size_t offset)
{
	u8 page[PAGE] __attribute((aligned(PAGE)));

	if (!copy(page, map.base + offset, PAGE))
		read_rest(page, offset);
	errno = EIO;
	if (guard.fd >= 0 && pwrite(guard.fd, page, PAGE, offset) == PAGE && !fsync(guard.fd) &&
	    map_again(offset))
		return true;
	map.error = map.error ?: errno;
	return false;
}

static bool rewrite_pages(const void *addr, size_t len)
{
	size_t from = (const u8 *)addr - map.base, end = from + len;

	for (from -= from % PAGE; from < end; from += PAGE)
		if (!rewrite_page(from))
			return false;
	return true;
}

/**
 * pm_host_heal - make bytes accessible, if they aren't
 * @addr: in the mapping
 * @len: at most a page
 *
 * Records that were lost become invalid ones. Durable on return.
 *
 * Return: false if that failed; pm_host_error() tells why.
 */
bool pm_host_heal(void *addr, size_t len)
{
	u8 probe[PAGE];

	return copy(probe, addr, min_t(size_t, len, PAGE)) || rewrite_pages(addr, len);
}

void pm_copy(void *to, const void *from, size_t len)
{
	if (map.error)
		return;
	if (!copy(to, from, len) && rewrite_pages(to, len) && !copy(to, from, len))
		map.error = EIO;
	mark_dirty(to, len);
}

void pm_store64(__le64 *to, __le64 value)
{
	pm_copy(to, &value, sizeof(value));
}

/*
 * Bytes of an image that read as zeros are not stored to, so that its holes stay holes. They are part of what
 * the fence writes back: another program may have stored them and not waited.
 */
void pm_zero(void *to, size_t len)
{
	static const u8 zeros[PAGE];
	u8 found[PAGE];
	size_t part;

	for (; len; to = (u8 *)to + part, len -= part) {
		part = min_t(size_t, len, PAGE);
		if (guard.in_file && copy(found, to, part) && !memcmp(found, zeros, part))
			mark_dirty(to, part);
		else
			pm_copy(to, zeros, part);
	}
}

/* pm_fence() writes back all that is dirty. */
void pm_flush(void *addr, size_t len)
{
	(void)addr;
	(void)len;
}

void pm_fence(void)
{
	size_t from = map.dirty_from & ~(size_t)(sysconf(_SC_PAGESIZE) - 1);

	if (map.dirty_from >= map.dirty_to)
		return;
	if (msync(map.base + from, map.dirty_to - from, MS_SYNC) && !map.error)
		map.error = errno;
	map.dirty_from = map.size;
	map.dirty_to = 0;
}

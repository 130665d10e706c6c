// SPDX-License-Identifier: GPL-2.0-only
/*
 * The primitives of env.h for a program, over a shared mapping of a block device or a file. They are
 * plain stores, with msync() as the fence: so the order of core/ is the order on the device.
 *
 * There is one mapping at a time, used by one thread. Core functions return no error of a fence, so the
 * first one is kept for pm_host_error().
 *
 * Linked into the forebay command. The crash tests use tests/core/pm_sim.c instead.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "host.h"

static struct {
	u8 *base;
	size_t size;
	size_t dirty_from, dirty_to;	/* since the last fence; empty: from >= to */
	int error;
} map;

/**
 * pm_host_map - set the mapping that core functions write
 * @base: from mmap(), MAP_SHARED and writable
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

/**
 * pm_host_error - the first error of a fence
 *
 * Return: 0, or the errno of the first fence since pm_host_map() that failed.
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

void pm_store64(__le64 *to, __le64 value)
{
	WRITE_ONCE(*to, value);
	mark_dirty(to, sizeof(*to));
}

void pm_copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	mark_dirty(to, len);
}

void pm_zero(void *to, size_t len)
{
	memset(to, 0, len);
	mark_dirty(to, len);
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

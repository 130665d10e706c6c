// SPDX-License-Identifier: GPL-2.0-only
/*
 * The primitives of env.h over a program's shared mapping of a block device or
 * a file: plain stores, and msync() as the fence, so that what core/ orders is
 * ordered on the device too.
 *
 * One mapping at a time, one thread. Core functions have no error for a fence
 * that fails, so the first one is kept for the program to ask for at the end.
 *
 * Linked into the forebay command; the crash tests have tests/core/pm_sim.c
 * in its place.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "host_pm.h"

static struct {
	u8 *base;
	size_t size;
	size_t dirty_from, dirty_to;	/* since the last fence; empty: from >= to */
	int error;
} map;

/**
 * pm_host_map - say which mapping core functions are going to write
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
 * pm_host_error - did everything reach the device?
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

/* pm_fence() writes back whatever is dirty. */
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

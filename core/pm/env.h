/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What core/ needs from its surroundings. Only this file knows whether core/ is built into a kernel
 * module or into a program.
 *
 * pm_read() copies from persistent memory, and returns false where the medium has lost the data; a
 * plain load would crash the machine, or end the program with SIGBUS. All stores to persistent memory
 * are made by these primitives:
 *
 *   pm_store64  one aligned 8-byte store, never torn; durable after
 *               pm_flush() of it (where CPU caches are lost) and pm_fence()
 *   pm_copy     a copy past the caches; durable after pm_fence()
 *   pm_zero     the same with zeros
 *   pm_flush    writes cache lines back; has no effect before pm_fence()
 *   pm_fence    all that was copied or flushed before is durable before
 *               anything stored after
 *
 * In the kernel they are inline. A program links one of two implementations: core/pm/host.c over a
 * mapping of the device (the forebay command), or tests/core/pm_sim.c, which cuts the power between any
 * two of them.
 */
#ifndef FOREBAY_CORE_PM_ENV_H
#define FOREBAY_CORE_PM_ENV_H

#ifdef __KERNEL__

#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/libnvdimm.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>

#include "../../compat/crc.h"
#include "trace.h"

static inline bool pm_read(void *to, const void *from, size_t len)
{
	return !copy_mc_to_kernel(to, from, len);
}

static inline void pm_store64(__le64 *to, __le64 value)
{
	WRITE_ONCE(*to, value);
	trace_forebay_pm_store(to);
}

static inline void pm_copy(void *to, const void *from, size_t len)
{
	memcpy_flushcache(to, from, len);
	trace_forebay_pm_write(to, len);
}

static inline void pm_zero(void *to, size_t len)
{
	const void *zeros = page_address(ZERO_PAGE(0));

	for (; len > PAGE_SIZE; to += PAGE_SIZE, len -= PAGE_SIZE)
		pm_copy(to, zeros, PAGE_SIZE);
	pm_copy(to, zeros, len);
}

static inline void pm_flush(void *addr, size_t len)
{
	void *line = PTR_ALIGN_DOWN(addr, L1_CACHE_BYTES);

	arch_wb_cache_pmem(addr, len);
	trace_forebay_pm_write(line, L1_CACHE_ALIGN(addr + len - line));
}

static inline void pm_fence(void)
{
	pmem_wmb();
	trace_forebay_pm_fence(current);
}

#else /* a program */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#define cpu_to_le16(v)	htole16(v)
#define cpu_to_le32(v)	htole32(v)
#define cpu_to_le64(v)	htole64(v)
#define le16_to_cpu(v)	le16toh(v)
#define le32_to_cpu(v)	le32toh(v)
#define le64_to_cpu(v)	le64toh(v)

#define READ_ONCE(v)		__atomic_load_n(&(v), __ATOMIC_RELAXED)
#define WRITE_ONCE(v, value)	__atomic_store_n(&(v), value, __ATOMIC_RELAXED)
/* A user names the pair. */
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
/* As above. */
#define smp_store_release(p, value)	__atomic_store_n(p, value, __ATOMIC_RELEASE)

#define min_t(type, x, y)	({ type _x = (x), _y = (y); _x < _y ? _x : _y; })
#define max_t(type, x, y)	({ type _x = (x), _y = (y); _x > _y ? _x : _y; })

/* Like the kernel's: Castagnoli polynomial, no inversion before or after. */
static inline u32 crc32c(u32 crc, const void *address, unsigned int length)
{
	static const u32 nibbles[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
		0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	const u8 *byte = address;

	while (length--) {
		crc ^= *byte++;
		crc = crc >> 4 ^ nibbles[crc & 15];
		crc = crc >> 4 ^ nibbles[crc & 15];
	}
	return crc;
}

#define crc32c_few	crc32c

/* In the kernel, other tasks may run here. */
#define cond_resched()	((void)0)

/* Returns the address of the first byte that is not @c; NULL: there is none. */
static inline void *memchr_inv(const void *start, int c, size_t bytes)
{
	const u8 *byte = start;

	for (; bytes--; byte++)
		if (*byte != (u8)c)
			return (void *)byte;
	return NULL;
}

bool pm_read(void *to, const void *from, size_t len);
void pm_store64(__le64 *to, __le64 value);
void pm_copy(void *to, const void *from, size_t len);
void pm_zero(void *to, size_t len);
void pm_flush(void *addr, size_t len);
void pm_fence(void);

#endif

/*
 * Each switch leaves out one step that durability depends on. The tests build core/ with each switch
 * and must fail; no other build sets one.
 */
#ifdef FOREBAY_BREAK_DATA_FENCE		/* committed before the data is durable */
#define BREAK_DATA_FENCE	1
#else
#define BREAK_DATA_FENCE	0
#endif
#ifdef FOREBAY_BREAK_FLUSH		/* stores stay in the CPU's caches */
#define BREAK_FLUSH		1
#else
#define BREAK_FLUSH		0
#endif
#ifdef FOREBAY_BREAK_FREE_FENCE		/* reused before it is durably free */
#define BREAK_FREE_FENCE	1
#else
#define BREAK_FREE_FENCE	0
#endif
#ifdef FOREBAY_BREAK_OPEN_FENCE		/* a log's generation is filled before it is durably open */
#define BREAK_OPEN_FENCE	1
#else
#define BREAK_OPEN_FENCE	0
#endif
#ifdef FOREBAY_BREAK_DECIDE_FENCE	/* a name log's decisions count before they are durable */
#define BREAK_DECIDE_FENCE	1
#else
#define BREAK_DECIDE_FENCE	0
#endif
#ifdef FOREBAY_BREAK_NAMES_FENCE	/* a name log's records are committed before they are durable */
#define BREAK_NAMES_FENCE	1
#else
#define BREAK_NAMES_FENCE	0
#endif
#ifdef FOREBAY_BREAK_DECISIONS		/* recovery decides again after each power cut */
#define BREAK_DECISIONS		1
#else
#define BREAK_DECISIONS		0
#endif
#ifdef FOREBAY_BREAK_COUNTER		/* a change counts as stored that the counter doesn't show */
#define BREAK_COUNTER		1
#else
#define BREAK_COUNTER		0
#endif

/*
 * Milliseconds before the next fence, if a switch leaves a step out. So a power cut at a random moment comes
 * in between often enough to be found. The simulator of tests/core needs none, since it cuts everywhere.
 */
#ifdef __KERNEL__
#define BREAK_WAIT(switch, ms)	do { if (switch) msleep(ms); } while (0)
#else
#define BREAK_WAIT(switch, ms)	((void)(switch))
#endif

#endif

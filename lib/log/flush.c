// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flushes cache lines with the cheapest instruction that the processor has.
 */
#include "flush.h"

#include <stdint.h>

#define LINE	64

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

/* Bits of leaf 7 in EBX */
#define HAS_CLFLUSHOPT	(1u << 23)
#define HAS_CLWB	(1u << 24)

enum way { UNKNOWN, CLFLUSH, CLFLUSHOPT, CLWB };

static enum way find_way(void)
{
	unsigned int a, b = 0, c, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		b = 0;
	return b & HAS_CLWB ? CLWB : b & HAS_CLFLUSHOPT ? CLFLUSHOPT : CLFLUSH;
}

__attribute__((target("clwb,clflushopt")))
static void flush_line(enum way way, char *line)
{
	if (way == CLWB)
		_mm_clwb(line);
	else if (way == CLFLUSHOPT)
		_mm_clflushopt(line);
	else
		_mm_clflush(line);
}

/**
 * flush_possible - whether lines can be flushed from here
 *
 * Context: any thread.
 * Return: false if this processor's instructions are not known here; then fdatasync(2) is needed.
 */
bool flush_possible(void)
{
	return true;
}

/**
 * flush_lines - send cache lines to persistent memory
 * @start: address of the first byte
 * @length: bytes; all lines that they touch are flushed
 *
 * Context: any thread. The stores are durable after flush_fence().
 */
void flush_lines(const void *start, size_t length)
{
	static enum way way;	/* computed more than once if threads race; the value is the same */
	enum way known = __atomic_load_n(&way, __ATOMIC_RELAXED);
	char *line = (char *)((uintptr_t)start & ~(uintptr_t)(LINE - 1));

	if (known == UNKNOWN) {
		known = find_way();
		__atomic_store_n(&way, known, __ATOMIC_RELAXED);
	}
	for (; line < (const char *)start + length; line += LINE)
		flush_line(known, line);
}

/**
 * flush_fence - wait for the flushes of this thread
 *
 * Context: the thread that called flush_lines().
 */
void flush_fence(void)
{
	_mm_sfence();
}

#else

bool flush_possible(void)
{
	return false;
}

void flush_lines(const void *start, size_t length)
{
	(void)start;
	(void)length;
}

void flush_fence(void)
{
}
#endif

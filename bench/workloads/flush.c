// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to flush ranges that were stored to, by their size (PMDK thesis 5.3, figure 15). Stands in
 * for pmembench's pmem_flush, and flushes with a named instruction as well.
 *
 *	flush FILE MIB SIZE persist|clwb|clflushopt|clflush|nt SECONDS
 *
 * Batches of ranges at random are stored to, untimed; then the batch is timed: each range is flushed and
 * followed by a fence. persist is libpmem's choice, and msync() where the file is no persistent memory.
 * nt: non-temporal stores, which need no flush, are timed with the fence. Prints what libpmem found the
 * file to be, the ranges, the lines flushed, and nanoseconds. The ranges that were flushed have bytes of
 * 0xff, in a file of zeros.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <immintrin.h>
#include <libpmem.h>
#include "driver.h"

enum { BATCH = 64, BYTES = 1 << 20 /* of a batch at most */, LEAF = 7 };

static uint64_t lines;
static int is_pmem;

static void persist(char *at, size_t size)
{
	if (is_pmem)
		pmem_persist(at, size);
	else if (pmem_msync(at, size))
		err(1, "msync");
	lines += size / LINE;
}

__attribute__((target("clwb"))) static void by_clwb(char *at, size_t size)
{
	for (size_t line = 0; line < size; line += LINE, lines++)
		_mm_clwb(at + line);
	_mm_sfence();
}

__attribute__((target("clflushopt"))) static void by_clflushopt(char *at, size_t size)
{
	for (size_t line = 0; line < size; line += LINE, lines++)
		_mm_clflushopt(at + line);
	_mm_sfence();
}

static void by_clflush(char *at, size_t size)
{
	for (size_t line = 0; line < size; line += LINE, lines++)
		_mm_clflush(at + line);
	_mm_sfence();
}

static void by_nt(char *at, size_t size)
{
	for (size_t line = 0; line < size; line += LINE, lines++)
		for (size_t word = 0; word < LINE; word += sizeof(long long))
			_mm_stream_si64((long long *)(at + line + word), -1);
	_mm_sfence();
}

/* Bits of CPUID leaf 7, EBX. */
static const struct {
	const char *name;
	void (*flush)(char *at, size_t size);
	unsigned int needs;
} ways[] = {
	{ "persist", persist, 0 }, { "clwb", by_clwb, bit_CLWB },
	{ "clflushopt", by_clflushopt, bit_CLFLUSHOPT }, { "clflush", by_clflush, 0 }, { "nt", by_nt, 0 },
};

static int way(const char *name)
{
	unsigned int eax, ebx, ecx, edx;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(ways[i].name, name))
			continue;
		if (!__get_cpuid_count(LEAF, 0, &eax, &ebx, &ecx, &edx) ||
		    (ebx & ways[i].needs) != ways[i].needs)
			errx(1, "this processor has no %s", name);
		return i;
	}
	errx(2, "no way to flush is called %s", name);
}

int main(int argc, char **argv)
{
	size_t total, size, offsets[BATCH];
	long long begin, end, spent = 0;
	uint64_t ranges = 0, batch;
	int chosen;
	char *map;

	if (argc != 6)
		errx(2, "usage: flush FILE MIB SIZE persist|clwb|clflushopt|clflush|nt SECONDS");
	size = strtoul(argv[3], NULL, 0);
	chosen = way(argv[4]);
	map = pmem_map_file(argv[1], 0, 0, 0, &total, &is_pmem);
	if (!map || total != strtoul(argv[2], NULL, 0) << 20)
		errx(1, "%s: %s", argv[1], pmem_errormsg());
	for (size_t at = 0; at < total; at += PAGE)
		memset(map + at, 0, PAGE);
	batch = BYTES / size < 1 ? 1 : BYTES / size > BATCH ? BATCH : BYTES / size;
	for (end = now() + atof(argv[5]) * 1e9; !ranges || now() < end; ranges += batch) {
		for (uint64_t i = 0; i < batch; i++) {
			offsets[i] = draw((total - size) / LINE + 1) * LINE;
			if (ways[chosen].flush != by_nt)
				memset(map + offsets[i], 0xff, size);
		}
		begin = now();
		for (uint64_t i = 0; i < batch; i++)
			ways[chosen].flush(map + offsets[i], size);
		spent += now() - begin;
	}
	printf("%s %ju %ju %lld\n", is_pmem ? "PMEM" : "MSYNC", ranges, lines, spent);
	return 0;
}

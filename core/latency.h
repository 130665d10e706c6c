/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Latencies, as every module keeps and prints them: for each CPU a sum and a histogram. For the kernel alone.
 *
 * Adding takes no lock and writes one CPU's memory. A reader sums over the CPUs; it may see an addition of
 * the moment in the sum of nanoseconds and not yet in its bin.
 */
#ifndef FOREBAY_CORE_LATENCY_H
#define FOREBAY_CORE_LATENCY_H

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/sprintf.h>

#define LATENCY_BINS	32		/* bin i: from 2^(i + 6) to below 2^(i + 7) ns */

struct latency {
	u64 ns;
	u64 bins[LATENCY_BINS];
};

static inline void latency_add(struct latency __percpu *latency, u64 ns)
{
	this_cpu_add(latency->ns, ns);
	this_cpu_inc(latency->bins[clamp(fls64(ns) - 7, 0, LATENCY_BINS - 1)]);
}

/**
 * latency_print() - a latency as text, without the end of the line
 * @latency: for each CPU
 * @text: where to
 * @size: bytes of @text
 *
 * The text is the sum in ns and, with a blank before it, each bin that isn't empty: "<limit in ns:count". The
 * last bin has no limit in truth.
 *
 * Return: bytes of text.
 */
static inline int latency_print(const struct latency __percpu *latency, char *text, size_t size)
{
	u64 bins[LATENCY_BINS] = { };
	u64 ns = 0;
	int cpu, i, n;

	for_each_possible_cpu(cpu) {
		const struct latency *part = per_cpu_ptr(latency, cpu);

		ns += READ_ONCE(part->ns);
		for (i = 0; i < LATENCY_BINS; i++)
			bins[i] += READ_ONCE(part->bins[i]);
	}
	n = scnprintf(text, size, "%llu", ns);
	for (i = 0; i < LATENCY_BINS; i++)
		if (bins[i])
			n += scnprintf(text + n, size - n, " <%llu:%llu", 128ULL << i, bins[i]);
	return n;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Latencies: kept for each CPU and phase, and printed by a message. */
#ifndef FOREBAY_DM_LATENCY_H
#define FOREBAY_DM_LATENCY_H

#include <linux/device-mapper.h>
#include <linux/percpu.h>

#define LATENCY_BINS	32		/* bin i: from 2^(i + 6) to below 2^(i + 7) ns */

struct latency {
	u64 ns;
	u32 bins[LATENCY_BINS];
};

static inline void latency_add(struct latency __percpu *latency, u64 ns)
{
	this_cpu_add(latency->ns, ns);
	this_cpu_inc(latency->bins[clamp(fls64(ns) - 7, 0, LATENCY_BINS - 1)]);
}

/*
 * Prints a line without its end: the name and, if anything was measured, the sum in ns and each bin
 * that isn't empty, as "<limit in ns:count".
 */
static inline unsigned int latency_print(const struct latency __percpu *latency, const char *name,
					 char *result, unsigned int maxlen, unsigned int sz)
{
	u32 bins[LATENCY_BINS] = { };
	u64 ns = 0;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		const struct latency *part = per_cpu_ptr(latency, cpu);

		ns += READ_ONCE(part->ns);
		for (i = 0; i < LATENCY_BINS; i++)
			bins[i] += READ_ONCE(part->bins[i]);
	}
	DMEMIT("%s", name);
	if (ns)
		DMEMIT(" %llu", ns);
	for (i = 0; i < LATENCY_BINS; i++)
		if (bins[i])
			DMEMIT(" <%llu:%u", 128ULL << i, bins[i]);
	return sz;
}

/* The answer to the message latency show: a line for each of @nr phases. */
static inline int latencies_print(const struct latency __percpu *latencies, const char * const *names, u32 nr,
				  char *result, unsigned int maxlen)
{
	unsigned int sz = 0;
	u32 i;

	for (i = 0; i < nr; i++) {
		if (i)
			DMEMIT("\n");
		sz = latency_print(&latencies[i], names[i], result, maxlen, sz);
	}
	return 1;	/* device-mapper: there is a result */
}

#endif

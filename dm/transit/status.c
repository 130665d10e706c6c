// SPDX-License-Identifier: GPL-2.0-only
/* What an administrator sees: the status line, counters, latencies. */
#include "policy.h"

static const char * const dtc_counter_names[DTC_NR_COUNTERS] = {
	[DTC_READ_BLOCKS] = "read_blocks",
	[DTC_READ_HITS] = "read_hits",
	[DTC_WRITE_BLOCKS] = "write_blocks",
	[DTC_WRITE_HITS] = "write_hits",
	[DTC_STALLED] = "stalled",
	[DTC_BYPASSED] = "bypassed",
	[DTC_FUA] = "fua",
	[DTC_FLUSHES] = "flushes",
	[DTC_DISCARDS] = "discards",
	[DTC_ZEROES] = "zeroes",
	[DTC_EVICTED] = "evicted",
	[DTC_DROPPED] = "dropped",
	[DTC_ERRORS] = "errors",
	[DTC_FAILED_FLUSHES] = "failed_flushes",
};

static const char * const dtc_phase_names[DTC_NR_PHASES] = {
	[DTC_PHASE_METADATA] = "metadata",
	[DTC_PHASE_CACHE_WRITE] = "cache_write",
	[DTC_PHASE_EVICT_AND_WRITE] = "evict_and_write",
	[DTC_PHASE_BYPASS] = "bypass",
	[DTC_PHASE_ENQUEUE] = "enqueue",
	[DTC_PHASE_FLUSH] = "flush",
	[DTC_PHASE_WRITE] = "write",
	[DTC_PHASE_READ] = "read",
	[DTC_PHASE_EVICTION] = "eviction",
};

static u64 dtc_total(const struct dtc *t, enum dtc_counter counter)
{
	u64 n = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		n += READ_ONCE(per_cpu_ptr(t->stats, cpu)->count[counter]);
	return n;
}

void dtc_status(struct dm_target *ti, status_type_t type, unsigned int flags, char *result,
		unsigned int maxlen)
{
	struct dtc *t = ti->private;
	unsigned int sz = 0;
	u32 i;

	switch (type) {
	case STATUSTYPE_INFO:
		DMEMIT("%s %s %u/%u %u", READ_ONCE(t->failing) || READ_ONCE(t->flush_failed) ? "error" : "ok",
		       t->policy->name, dtc_used(t), t->nr_slots, 2 * (DTC_NR_COUNTERS + 1));
		DMEMIT(" refused %d", atomic_read(&t->nr_failed));
		for (i = 0; i < DTC_NR_COUNTERS; i++)
			DMEMIT(" %s %llu", dtc_counter_names[i], dtc_total(t, i));
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s", t->lower->name);
		dtc_params_print(t, result, maxlen, &sz);
		break;
	case STATUSTYPE_IMA:
		DMEMIT_TARGET_NAME_VERSION(ti->type);
		DMEMIT(",device_name=%s,policy=%s;", t->lower->name, t->policy->name);
		break;
	}
}

/* Message latency show. */
int dtc_latency_print(struct dtc *t, char *result, unsigned int maxlen)
{
	return latencies_print(t->stats->phase, dtc_phase_names, DTC_NR_PHASES, result, maxlen);
}

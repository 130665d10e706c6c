// SPDX-License-Identifier: GPL-2.0-only
/* What an administrator sees: the status line, counters, latencies. */
#include "space.h"
#include "writelog.h"

static const char * const dwl_counter_names[DWL_NR_COUNTERS] = {
	[DWL_READS] = "reads",
	[DWL_READ_SECTORS] = "read_sectors",
	[DWL_READ_HIT_SECTORS] = "read_hit_sectors",
	[DWL_LOST_READS] = "lost_reads",
	[DWL_WRITES] = "writes",
	[DWL_WRITE_SECTORS] = "write_sectors",
	[DWL_ENTRIES] = "entries",
	[DWL_DIRECT_WRITES] = "direct_writes",
	[DWL_DISCARDS] = "discards",
	[DWL_ZEROES] = "zeroes",
	[DWL_SLOT_WAITS] = "slot_waits",
	[DWL_SPACE_WAITS] = "space_waits",
	[DWL_FULL_WAITS] = "full_waits",
	[DWL_GENERATIONS] = "generations",
	[DWL_WRITEBACK_SECTORS] = "writeback_sectors",
	[DWL_WRITEBACK_BIOS] = "writeback_bios",
	[DWL_SUPERSEDED_SECTORS] = "superseded_sectors",
	[DWL_ALONG_SECTORS] = "along_sectors",
	[DWL_ORIGIN_ERRORS] = "origin_errors",
	[DWL_MEDIUM_ERRORS] = "medium_errors",
};

static const char * const dwl_phase_names[DWL_NR_PHASES] = {
	[DWL_PHASE_WRITE] = "write",
	[DWL_PHASE_SPACE] = "space",
	[DWL_PHASE_SLOT] = "slot",
	[DWL_PHASE_COPY] = "copy",
	[DWL_PHASE_INDEX] = "index",
	[DWL_PHASE_READ] = "read",
	[DWL_PHASE_ORIGIN_READ] = "origin_read",
	[DWL_PHASE_WRITEBACK] = "writeback",
	[DWL_PHASE_FLUSH] = "flush",
};

u64 dwl_total(const struct dwl *w, enum dwl_counter counter)
{
	u64 n = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		n += READ_ONCE(per_cpu_ptr(w->stats, cpu)->count[counter]);
	return n;
}

static const char *dwl_health(const struct dwl *w)
{
	if (READ_ONCE(w->failed) || dwl_gens_exhausted(w))
		return "failed";
	return READ_ONCE(w->failing_since) || READ_ONCE(w->aside.nr) ? "error" : "ok";
}

static const char *dwl_mode_name(const struct dwl *w)
{
	static const char * const names[] = {
		[DWL_CACHING] = "write", [DWL_CLEANING] = "cleaning", [DWL_CLEANER] = "cleaner",
	};

	return names[READ_ONCE(w->mode)];
}

void dwl_status(struct dm_target *ti, status_type_t type, unsigned int flags, char *result,
		unsigned int maxlen)
{
	struct dwl *w = ti->private;
	u32 used = dwl_gens_used(w), i;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		/* Not resumed yet: the log hasn't been read. */
		if (!w->loaded)
			used = 0;
		DMEMIT("%s %s %u/%u %llu/%llu %u", dwl_health(w), dwl_mode_name(w), used, w->wl.nr_gens,
		       used * w->gen_bytes, w->wl.nr_gens * w->gen_bytes, 2 * (DWL_NR_COUNTERS + 4));
		DMEMIT(" regions %lu", atomic_long_read(&w->nr_regions));
		DMEMIT(" origin_reads %lld", dwl_reads_in_flight(w));
		DMEMIT(" refused %u", READ_ONCE(w->aside.nr));
		DMEMIT(" broken %u", READ_ONCE(w->nr_broken));
		for (i = 0; i < DWL_NR_COUNTERS; i++)
			DMEMIT(" %s %llu", dwl_counter_names[i], dwl_total(w, i));
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s %s", w->origin->name, w->log->name);
		dwl_params_print(w, result, maxlen, &sz);
		break;
	case STATUSTYPE_IMA:
		DMEMIT_TARGET_NAME_VERSION(ti->type);
		DMEMIT(",origin_device_name=%s,log_device_name=%s;", w->origin->name, w->log->name);
		break;
	}
}

/* Message latency show. */
int dwl_latency_print(struct dwl *w, char *result, unsigned int maxlen)
{
	return latencies_print(w->stats->latency, dwl_phase_names, DWL_NR_PHASES, result, maxlen);
}

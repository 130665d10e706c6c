/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of the main steps: /sys/kernel/tracing/events/forebay_transit/ */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM forebay_transit

#if !defined(FOREBAY_TRANSIT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FOREBAY_TRANSIT_TRACE_H

#include <linux/tracepoint.h>

#include "../trace_device.h"
#include "transit.h"

TRACE_EVENT(dtc_store,
	TP_PROTO(struct dtc *t, u64 block, bool hit, bool stalled),
	TP_ARGS(t, block, hit, stalled),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u64, block)
		__field(bool, hit)
		__field(bool, stalled)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(t->lower);
		__entry->block = block;
		__entry->hit = hit;
		__entry->stalled = stalled;
	),
	TP_printk("below=" TRACE_DEVICE_FORMAT " block=%llu hit=%d stalled=%d", TRACE_DEVICE_ARGS,
		  __entry->block, __entry->hit, __entry->stalled)
);

TRACE_EVENT(dtc_past,
	TP_PROTO(struct dtc *t, u64 block, u32 blocks, bool fua),
	TP_ARGS(t, block, blocks, fua),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u64, block)
		__field(u32, blocks)
		__field(bool, fua)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(t->lower);
		__entry->block = block;
		__entry->blocks = blocks;
		__entry->fua = fua;
	),
	TP_printk("below=" TRACE_DEVICE_FORMAT " block=%llu+%u fua=%d", TRACE_DEVICE_ARGS,
		  __entry->block, __entry->blocks, __entry->fua)
);

TRACE_EVENT(dtc_evicted,
	TP_PROTO(struct dtc *t, u64 block, blk_status_t status),
	TP_ARGS(t, block, status),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u64, block)
		__field(int, error)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(t->lower);
		__entry->block = block;
		__entry->error = blk_status_to_errno(status);
	),
	TP_printk("below=" TRACE_DEVICE_FORMAT " block=%llu error=%d", TRACE_DEVICE_ARGS,
		  __entry->block, __entry->error)
);

TRACE_EVENT(dtc_drain,
	TP_PROTO(struct dtc *t, u32 stamp, u32 used),
	TP_ARGS(t, stamp, used),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u32, stamp)
		__field(u32, used)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(t->lower);
		__entry->stamp = stamp;
		__entry->used = used;
	),
	TP_printk("below=" TRACE_DEVICE_FORMAT " drain=%u used=%u", TRACE_DEVICE_ARGS, __entry->stamp,
		  __entry->used)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

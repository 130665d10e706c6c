/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of the main steps: /sys/kernel/tracing/events/forebay_writelog/ */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM forebay_writelog

#if !defined(FOREBAY_WRITELOG_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FOREBAY_WRITELOG_TRACE_H

#include <linux/tracepoint.h>

#include "../trace_device.h"
#include "writelog.h"

TRACE_EVENT(dwl_append,
	TP_PROTO(struct dwl *w, const struct wl_entry *e),
	TP_ARGS(w, e),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u64, order)
		__field(u64, sector)
		__field(u64, sectors)
		__field(unsigned int, op)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(w->log);
		__entry->order = e->order;
		__entry->sector = e->sector;
		__entry->sectors = e->nr_sectors;
		__entry->op = e->op;
	),
	TP_printk("log=" TRACE_DEVICE_FORMAT " op=%u generation=%llu seq=%llu sector=%llu+%llu",
		  TRACE_DEVICE_ARGS, __entry->op, __entry->order >> WL_ID_SHIFT,
		  __entry->order & WL_MAX_SEQ, __entry->sector, __entry->sectors)
);

TRACE_EVENT(dwl_writeback,
	TP_PROTO(struct dwl *w, u64 sector, u32 sectors),
	TP_ARGS(w, sector, sectors),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u64, sector)
		__field(u32, sectors)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(w->log);
		__entry->sector = sector;
		__entry->sectors = sectors;
	),
	TP_printk("log=" TRACE_DEVICE_FORMAT " sector=%llu+%u", TRACE_DEVICE_ARGS, __entry->sector,
		  __entry->sectors)
);

DECLARE_EVENT_CLASS(dwl_gen,
	TP_PROTO(struct dwl *w, u64 id, int err),
	TP_ARGS(w, id, err),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u64, id)
		__field(u32, free)
		__field(int, err)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(w->log);
		__entry->id = id;
		__entry->free = w->nr_free;
		__entry->err = err;
	),
	TP_printk("log=" TRACE_DEVICE_FORMAT " generation=%llu free=%u err=%d", TRACE_DEVICE_ARGS,
		  __entry->id, __entry->free, __entry->err)
);

DEFINE_EVENT(dwl_gen, dwl_gen_open, TP_PROTO(struct dwl *w, u64 id, int err), TP_ARGS(w, id, err));
DEFINE_EVENT(dwl_gen, dwl_gen_written, TP_PROTO(struct dwl *w, u64 id, int err), TP_ARGS(w, id, err));
DEFINE_EVENT(dwl_gen, dwl_gen_free, TP_PROTO(struct dwl *w, u64 id, int err), TP_ARGS(w, id, err));

TRACE_EVENT(dwl_wait,
	TP_PROTO(struct dwl *w, u64 bytes),
	TP_ARGS(w, bytes),
	TP_STRUCT__entry(
		TRACE_DEVICE_FIELD
		__field(u64, bytes)
		__field(s64, credit)
	),
	TP_fast_assign(
		TRACE_DEVICE_ASSIGN(w->log);
		__entry->bytes = bytes;
		__entry->credit = w->space.credit;
	),
	TP_printk("log=" TRACE_DEVICE_FORMAT " bytes=%llu credit=%lld", TRACE_DEVICE_ARGS,
		  __entry->bytes, __entry->credit)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks in the kernel's implementation of env.h, for forebay-emu. They are bare tracepoints, which cost
 * a no-op while unused. The module that stores doesn't depend on the module that observes, and the two
 * may be loaded in any order.
 *
 * Each module that uses core/ defines the tracepoints once, in trace.c.
 */
#ifndef FOREBAY_CORE_PM_TRACE_H
#define FOREBAY_CORE_PM_TRACE_H

#include "../../compat/trace.h"

/* An 8-byte store was made; the bytes are in the CPU's caches. */
DECLARE_TRACE_EVENT(forebay_pm_store, TP_PROTO(void *to), TP_ARGS(to));
/* These bytes are being written to the medium: copied past the caches, or flushed (then whole lines). */
DECLARE_TRACE_EVENT(forebay_pm_write, TP_PROTO(void *to, size_t len), TP_ARGS(to, len));
/* These bytes were read by a copy. */
DECLARE_TRACE_EVENT(forebay_pm_read, TP_PROTO(const void *from, size_t len), TP_ARGS(from, len));
/* All that @task has written to the medium before is durable. */
DECLARE_TRACE_EVENT(forebay_pm_fence, TP_PROTO(struct task_struct *task), TP_ARGS(task));

#endif

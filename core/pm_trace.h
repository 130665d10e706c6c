/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks of the kernel's side of env.h, for forebay-emu: bare tracepoints, which cost a no-op while
 * nobody looks. The module that stores need not know the one that looks, nor be loaded after it.
 *
 * Each module that uses core/ defines them once, in pm_trace.c.
 */
#ifndef FOREBAY_CORE_PM_TRACE_H
#define FOREBAY_CORE_PM_TRACE_H

#include <linux/tracepoint.h>

/* An 8-byte store was made; it is in the CPU's caches. */
DECLARE_TRACE(forebay_pm_store, TP_PROTO(void *to), TP_ARGS(to));
/* These bytes are on their way to the medium: copied past the caches, or flushed (then whole lines). */
DECLARE_TRACE(forebay_pm_write, TP_PROTO(void *to, size_t len), TP_ARGS(to, len));
/* They were read, by a copy. */
DECLARE_TRACE(forebay_pm_read, TP_PROTO(const void *from, size_t len), TP_ARGS(from, len));
/* What @task has sent before is durable. */
DECLARE_TRACE(forebay_pm_fence, TP_PROTO(struct task_struct *task), TP_ARGS(task));

#endif

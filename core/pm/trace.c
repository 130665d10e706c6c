// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints of trace.h, defined once in each module. */
#include "trace.h"

DEFINE_TRACE(forebay_pm_store, TP_PROTO(void *to), TP_ARGS(to));
DEFINE_TRACE(forebay_pm_write, TP_PROTO(void *to, size_t len), TP_ARGS(to, len));
DEFINE_TRACE(forebay_pm_read, TP_PROTO(const void *from, size_t len), TP_ARGS(from, len));
DEFINE_TRACE(forebay_pm_fence, TP_PROTO(struct task_struct *task), TP_ARGS(task));

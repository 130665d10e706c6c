/* SPDX-License-Identifier: GPL-2.0-only */
/* Bare tracepoints: Linux 6.16 gives those of DECLARE_TRACE() a suffix, and has another macro without it. */
#ifndef FOREBAY_COMPAT_TRACE_H
#define FOREBAY_COMPAT_TRACE_H

#include <linux/tracepoint.h>

#include "compat.h"

#ifndef COMPAT_HAS_TRACE_SUFFIX
#define DECLARE_TRACE_EVENT	DECLARE_TRACE
#endif

#endif

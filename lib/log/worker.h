/* SPDX-License-Identifier: GPL-2.0-only */
/* The thread that keeps space ahead of a log. */
#ifndef FOREBAY_LIB_LOG_WORKER_H
#define FOREBAY_LIB_LOG_WORKER_H

#include "state.h"

int worker_start(struct forebay_log *log);
void worker_stop(struct forebay_log *log);
bool worker_needed(const struct forebay_log *log);

#endif

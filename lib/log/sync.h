/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes appended bytes durable. */
#ifndef FOREBAY_LIB_LOG_SYNC_H
#define FOREBAY_LIB_LOG_SYNC_H

#include "state.h"

int sync_locked(struct forebay_log *log);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Cache lines of a MAP_SYNC mapping become durable. */
#ifndef FOREBAY_LIB_LOG_FLUSH_H
#define FOREBAY_LIB_LOG_FLUSH_H

#include <stdbool.h>
#include <stddef.h>

bool flush_possible(void);
void flush_lines(const void *start, size_t length);
void flush_fence(void);

#endif

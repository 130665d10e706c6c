/* SPDX-License-Identifier: GPL-2.0-only */
/* The file's space and its mapping. */
#ifndef FOREBAY_LIB_LOG_SPACE_H
#define FOREBAY_LIB_LOG_SPACE_H

#include <errno.h>

#include "state.h"

/* The errno of space_grow() when the reserved addresses are used up; no system call here returns it. */
#define NO_ADDRESSES	EOVERFLOW

char *space_at(const struct forebay_log *log, __u64 offset);
int space_start(struct forebay_log *log);
int space_grow(struct forebay_log *log, __u64 wanted);
void space_drop_behind(struct forebay_log *log);
void space_unmap(struct forebay_log *log);

#endif

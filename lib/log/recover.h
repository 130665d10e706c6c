/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the end of a log after a crash. */
#ifndef FOREBAY_LIB_LOG_RECOVER_H
#define FOREBAY_LIB_LOG_RECOVER_H

#include <linux/types.h>

__s64 recover_end(int fd);
int lock_log(int fd);

#endif

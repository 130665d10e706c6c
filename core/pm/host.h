/* SPDX-License-Identifier: GPL-2.0-only */
/* Persistent memory for a program: a shared mapping of a block device or a file. See host.c. */
#ifndef FOREBAY_CORE_PM_HOST_H
#define FOREBAY_CORE_PM_HOST_H

#include <stddef.h>

void pm_host_map(void *base, size_t size);
int pm_host_error(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Persistent memory for a program: a shared mapping of a block device or a file. See host.c. */
#ifndef FOREBAY_CORE_PM_HOST_H
#define FOREBAY_CORE_PM_HOST_H

#include <stdbool.h>
#include <stddef.h>

void pm_host_map(void *base, size_t size);
void pm_host_guard(int fd, void (*unexpected)(void));
bool pm_host_heal(void *addr, size_t len);
int pm_host_error(void);

#endif

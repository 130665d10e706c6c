/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Signatures of file systems and partition tables on a device; none of them is Forebay's.
 */
#ifndef FOREBAY_TOOLS_SIGNATURE_H
#define FOREBAY_TOOLS_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

int signature_find(int fd, char *text, size_t size);
bool signature_wipe_all(int fd);

#endif

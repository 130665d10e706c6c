/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of bytes, and ranges, as the user types them.
 */
#ifndef FOREBAY_TOOLS_SIZE_H
#define FOREBAY_TOOLS_SIZE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

bool size_parse(const char *text, __u64 *size);
bool range_parse(const char *text, uint64_t *offset, uint64_t *length);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Checksums of appended bytes. This is the ground of log/; it uses nothing of it. */
#ifndef FOREBAY_LIB_LOG_CRC_H
#define FOREBAY_LIB_LOG_CRC_H

#include <stddef.h>
#include <linux/types.h>

__u32 crc_add(__u32 crc, const void *data, size_t length);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* CRC-32C of few bytes. Since Linux 6.15 crc32c() is a plain function. */
#ifndef FOREBAY_COMPAT_CRC_H
#define FOREBAY_COMPAT_CRC_H

#include <linux/crc32.h>
#include <linux/crc32c.h>

#include "compat.h"

/*
 * For a header or a word: the older crc32c() would first clear a descriptor of six times that size, for
 * the crypto API.
 */
#ifdef COMPAT_HAS_STATIC_CRC32C
#define crc32c_few(crc, address, length)	__crc32c_le(crc, (const u8 *)(address), length)
#else
#define crc32c_few	crc32c
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * File handles of xfs. An inode has two: with a number of 32 bits, or of 64. Which one xfs gives out is up to
 * the mount options inode32 and inode64, and it decodes both. The page store and the name log have the
 * latter, so what they name is found however xfs is mounted.
 */
#ifndef FOREBAY_CORE_STORE_XFS_HANDLE_H
#define FOREBAY_CORE_STORE_XFS_HANDLE_H

#include "store.h"

#define XFS_HANDLE_32	1	/* FILEID_INO32_GEN */
#define XFS_HANDLE_64	0x81	/* with XFS_FILEID_TYPE_64FLAG */

static inline void xfs_handle_widen(struct ps_handle *handle)
{
	u32 words[2];	/* number, generation */
	u64 number;

	if (handle->type != XFS_HANDLE_32)
		return;
	memcpy(words, handle->bytes, sizeof(words));
	number = words[0];
	memcpy(handle->bytes, &number, sizeof(number));
	memcpy(handle->bytes + sizeof(number), &words[1], sizeof(words[1]));
	handle->type = XFS_HANDLE_64;
	handle->len = sizeof(number) + sizeof(words[1]);
}

#endif

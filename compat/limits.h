/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many sectors a bio may zero. Linux 6.17 also has the number that a bio may zero and unmap: none, or as
 * many. It refuses limits in which the two differ.
 */
#ifndef FOREBAY_COMPAT_LIMITS_H
#define FOREBAY_COMPAT_LIMITS_H

#include <linux/blkdev.h>

#include "compat.h"

static inline void compat_limit_zeroes(struct queue_limits *limits, unsigned int sectors)
{
	limits->max_write_zeroes_sectors = sectors;
#ifdef COMPAT_HAS_ZEROES_UNMAP
	if (limits->max_hw_wzeroes_unmap_sectors)
		limits->max_hw_wzeroes_unmap_sectors = sectors;
#endif
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Pin, unpin, attach, detach: range_ioctl.c */
#ifndef FOREBAY_VFS_RANGE_IOCTL_H
#define FOREBAY_VFS_RANGE_IOCTL_H

#include "../forebay.h"

long fb_ioctl_range(struct file *file, unsigned int nr, const struct forebay_range *range);

#endif

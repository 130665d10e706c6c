/* SPDX-License-Identifier: GPL-2.0-only */
/* The lower file system's own ioctls: lower_ioctl.c */
#ifndef FOREBAY_VFS_LOWER_IOCTL_H
#define FOREBAY_VFS_LOWER_IOCTL_H

#include "../forebay.h"

long fb_lower_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* ioctl(2): ioctl.c */
#ifndef FOREBAY_VFS_IOCTL_H
#define FOREBAY_VFS_IOCTL_H

#include "../forebay.h"

long fb_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

#endif

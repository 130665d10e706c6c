/* SPDX-License-Identifier: GPL-2.0-only */
/* lseek(2): seek.c */
#ifndef FOREBAY_VFS_SEEK_H
#define FOREBAY_VFS_SEEK_H

#include "../forebay.h"

loff_t fb_llseek(struct file *file, loff_t offset, int whence);

#endif

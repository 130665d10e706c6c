/* SPDX-License-Identifier: GPL-2.0-only */
/* Structs from user memory: ioctl.c */
#ifndef FOREBAY_IOCTL_H
#define FOREBAY_IOCTL_H

#include "forebay.h"

int fb_copy_struct(void *to, size_t known, const void __user *user);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* The cache device: device.c */
#ifndef FOREBAY_PAGE_DEVICE_H
#define FOREBAY_PAGE_DEVICE_H

#include <linux/fs_context.h>

#include "../forebay.h"

int fb_cache_open(struct fb_sb *fsb, struct fs_context *fc, const char *path);
void fb_cache_close(struct fb_sb *fsb);

#endif

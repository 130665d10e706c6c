/* SPDX-License-Identifier: GPL-2.0-only */
/* Sync calls for a whole mount: syncfs.c */
#ifndef FOREBAY_SYNC_SYNCFS_H
#define FOREBAY_SYNC_SYNCFS_H

#include "../forebay.h"

int fb_sync_all(struct fb_sb *fsb);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* How long sync calls take, by what they wait for: latency.c */
#ifndef FOREBAY_SYNC_LATENCY_H
#define FOREBAY_SYNC_LATENCY_H

#include "../forebay.h"

int fb_latencies_init(struct fb_sb *fsb);
void fb_latencies_free(struct fb_sb *fsb);
void fb_latency_add(struct inode *inode, enum fb_sync_kind kind, u64 start_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Which volatile pages the next sync has to make durable: tracker.c */
#ifndef FOREBAY_SYNC_TRACKER_H
#define FOREBAY_SYNC_TRACKER_H

#include "../forebay.h"

void fb_track(struct fb_inode *fi, loff_t start, loff_t end);
void fb_track_stored(struct fb_inode *fi, pgoff_t first, pgoff_t beyond);
void fb_track_init(struct fb_tracker *tracker);
void fb_track_free(struct fb_tracker *tracker);
struct fb_tracker fb_track_take(struct fb_inode *fi);
bool fb_tracked(struct fb_inode *fi, pgoff_t index);
void fb_track_overflow(struct fb_inode *fi);
unsigned long fb_track_count(struct fb_inode *fi);
void fb_track_again(struct fb_inode *fi, struct fb_tracker *taken);
void fb_track_busy(struct fb_inode *fi, struct fb_tracker *taken);

/* The ranges of a tracker, an inode's (under its lock) or a taken one: in the order of the file, apart. */
static inline struct fb_pages_from *fb_track_ranges(struct fb_tracker *tracker)
{
	return tracker->more ?: tracker->few;
}

/*
 * True if a tracker, an inode's or a taken one, has no page. An inode's is read without its lock: a write
 * in progress may be missed, as a sync may miss it.
 */
static inline bool fb_track_empty(const struct fb_tracker *tracker)
{
	return !READ_ONCE(tracker->nr_ranges) && !READ_ONCE(tracker->overflow);
}

#endif

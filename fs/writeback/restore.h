/* SPDX-License-Identifier: GPL-2.0-only */
/* Content of lower files that are made again: restore.c */
#ifndef FOREBAY_WRITEBACK_RESTORE_H
#define FOREBAY_WRITEBACK_RESTORE_H

#include "../forebay.h"

/* What fb_restore_content() has copied, in pages. */
struct fb_restored {
	unsigned long copied;
	unsigned long lost;		/* the device can't read them */
};

int fb_restore_content(struct fb_sb *fsb, const struct ps_handle *handle, const struct path *lower,
		       struct fb_restored *restored);
s64 fb_restore_time(struct fb_sb *fsb, const struct ps_handle *handle);
unsigned long fb_restore_free(struct fb_sb *fsb, const struct ps_handle *handle);

#endif

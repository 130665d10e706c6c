/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages go to PMem because their range belongs there: promote.c */
#ifndef FOREBAY_SYNC_PROMOTE_H
#define FOREBAY_SYNC_PROMOTE_H

#include "../forebay.h"

/* What a task has waited for until one page can move; zero at first. */
struct fb_patience {
	unsigned long deadline;		/* for space */
	unsigned int busy;		/* how often the page was in use */
};

int fb_promote_page(struct fb_inode *fi, pgoff_t index);
int fb_promote(struct fb_inode *fi, pgoff_t *index, pgoff_t last, bool whole);
void fb_promote_mapped(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_wait_to_promote(struct fb_inode *fi, int err, struct fb_patience *patience);

#endif

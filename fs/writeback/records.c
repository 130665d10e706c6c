// SPDX-License-Identifier: GPL-2.0-only
/*
 * File records are taken back like pages: from the files that have not used theirs for the longest
 * time. What such a file has in PMem is written back first, and then leaves PMem together with
 * the record.
 *
 * The algorithm is the clock: a hand goes round the files that have records. A file that used its
 * record since the hand last came by (FB_RECORD_USED) is passed over once. The hand is an entry of
 * fb_sb->inodes; the files are not moved in that list, because other walks of it must visit each
 * file that was there when they began.
 *
 * A file keeps its record while its pages are pinned, locked or busy, and while they can't be written back.
 * pin/limit.c bounds how many files may be pinned.
 */
#include "../page/walk.h"
#include "../pin/lock.h"
#include "../pin/tree.h"
#include "evict.h"
#include "records.h"
#include "turn.h"

/* The first two laps give second chances; the third takes what is still needed. */
#define FB_RECORD_LAPS	3

/* A quarter of the table: the worker's goal. */
static bool fb_records_enough(struct fb_sb *fsb)
{
	return fsb->ps.nr_files - READ_ONCE(fsb->nr_files_used) >= DIV_ROUND_UP(fsb->ps.nr_files, 4);
}

static void fb_link_move(struct fb_sb *fsb, struct fb_sb_link *link, struct list_head *after)
{
	spin_lock(&fsb->inodes_lock);
	list_move(&link->list, after);
	spin_unlock(&fsb->inodes_lock);
}

/* Walks from the hand to the end of the list, or until enough records are free. */
static void fb_records_lap(struct fb_sb *fsb, bool second_chance)
{
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	fb_link_move(fsb, &walk.at, &fsb->record_hand.list);
	while (!fb_records_enough(fsb)) {
		fi = fb_walk_next(fsb, &walk);
		if (!fi) {
			fb_link_move(fsb, &fsb->record_hand, &fsb->inodes);
			return;
		}
		if (!test_and_clear_bit(FB_RECORD_USED, &fi->flags) || !second_chance) {
			fb_pins_refresh(fi);
			fb_turn(fi, NULL);
			fb_evict_for_reclaim(fi);
		}
		iput(&fi->vfs_inode);
		cond_resched();
	}
	fb_link_move(fsb, &fsb->record_hand, &walk.at.list);
	fb_walk_end(fsb, &walk);
}

/**
 * fb_records_reclaim() - take file records from files until a quarter of the table is free
 * @fsb: the mount. Sleeps; only the worker calls it
 */
void fb_records_reclaim(struct fb_sb *fsb)
{
	for (unsigned int lap = 0; lap < FB_RECORD_LAPS && !fb_records_enough(fsb); lap++)
		fb_records_lap(fsb, lap < FB_RECORD_LAPS - 1);
}

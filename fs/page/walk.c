// SPDX-License-Identifier: GPL-2.0-only
/* Walks over the files of a mount that have records, or pages that mlock() has locked. */
#include <linux/list.h>

#include "walk.h"

/**
 * fb_walk_begin() - begin to visit all files that have records, or locked pages
 * @fsb: the mount
 * @files: its inodes, or locked
 * @walk: begins
 *
 * Any number of walks go on at a time; each visits every file that was on the list when it began.
 */
void fb_walk_begin(struct fb_sb *fsb, struct list_head *files, struct fb_walk *walk)
{
	walk->at.fi = NULL;
	walk->end.fi = NULL;
	spin_lock(&fsb->inodes_lock);
	list_add(&walk->at.list, files);
	list_add_tail(&walk->end.list, files);
	spin_unlock(&fsb->inodes_lock);
}

/**
 * fb_walk_next() - the next file of a walk
 * @fsb: the mount
 * @walk: from fb_walk_begin()
 *
 * Return: a referenced inode, or NULL at the end, when the walk has ended.
 */
struct fb_inode *fb_walk_next(struct fb_sb *fsb, struct fb_walk *walk)
{
	struct fb_sb_link *link = &walk->at;

	spin_lock(&fsb->inodes_lock);
	while ((link = list_next_entry(link, list)) != &walk->end) {
		if (link->fi && igrab(&link->fi->vfs_inode)) {
			list_move(&walk->at.list, &link->list);
			spin_unlock(&fsb->inodes_lock);
			return link->fi;
		}
	}
	spin_unlock(&fsb->inodes_lock);
	fb_walk_end(fsb, walk);
	return NULL;
}

/**
 * fb_walk_end() - end a walk early; no harm if it has ended
 * @fsb: the mount
 * @walk: from fb_walk_begin()
 */
void fb_walk_end(struct fb_sb *fsb, struct fb_walk *walk)
{
	spin_lock(&fsb->inodes_lock);
	list_del_init(&walk->at.list);
	list_del_init(&walk->end.list);
	spin_unlock(&fsb->inodes_lock);
}

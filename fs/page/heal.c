// SPDX-License-Identifier: GPL-2.0-only
/*
 * File records whose line the device has lost. The inode knows all that its record says, so the record is
 * written anew when the loss is noticed: by a change of the record, or by a page that moves in.
 *
 * A lost line of page records can't be written so: other tasks may be changing the other three records of the
 * line. Such a page is not used (entry.c), or not changed (index.c).
 */
#include <linux/ratelimit.h>

#include "../lower/lower.h"
#include "heal.h"

/**
 * fb_record_state() - what the record means if a crash leaves no such file: fb_record_mark()
 * @fi: the inode; io_sem is held exclusively
 */
enum ps_file_state fb_record_state(const struct fb_inode *fi)
{
	return fi->vfs_inode.i_nlink && test_bit(FB_IS_BELOW, &fi->flags) &&
	       !test_bit(FB_LAST_NAME_GOES, &fi->flags) ? PS_FILE_LIVE : PS_FILE_UNLINKED;
}

/**
 * fb_record_heal() - write the file record of an inode that the device has lost
 * @fi: the inode, with a record; io_sem is held exclusively
 * @size: what the record says of the size, perhaps with PS_SIZE_EXACT
 *
 * If the line can't be healed, the cache has a damaged record: the kernel log says so, and so will mount.
 *
 * Context: process. Durable on return.
 */
void fb_record_heal(struct fb_inode *fi, u64 size)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct ps_file_info info = {
		.state = fb_record_state(fi), .generation = fi->generation, .size = size };
	bool healed = !fb_encode_handle(fi->lower, &info.handle);

	lockdep_assert_held_write(&fi->io_sem);
	if (healed) {
		spin_lock(&fi->vfs_inode.i_lock);	/* fb_times_are_below() may have wb_lock alone */
		info.time = fi->record_time;
		ps_file_rewrite(&fsb->ps, fi->file, &info);
		spin_unlock(&fi->vfs_inode.i_lock);
		healed = !ps_file_read(&fsb->ps, fi->file, &info);
	}
	if (healed)
		pr_warn_ratelimited("%s: the device had lost the record of inode %llu; it is whole again\n",
				    fsb->cache_name, (u64)fi->vfs_inode.i_ino);
	else
		pr_err_ratelimited("%s: the device has lost the record of inode %llu: write its pages back with 'forebay drain'\n",
				   fsb->cache_name, (u64)fi->vfs_inode.i_ino);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file is about to take the place of another one, whose data is perhaps synced. If its own data isn't, the
 * synced data would be lost for data that no call has synced. So with a name log, one of three comes first:
 *
 *   - A small file moves into PMem, as in a sync call. Then the rename is a change like any other.
 *   - Else xfs waits until the data are written. ext4 begins to write them by itself.
 *   - Then a barrier in the log has the next sync call go below (names/begin.c).
 *
 * The directories are locked, so other tasks' locks are not waited for.
 */
#include "../lower/lower.h"
#include "../names/names.h"
#include "../page/alloc.h"
#include "../page/record.h"
#include "../page/size.h"
#include "absorb.h"
#include "mapped.h"
#include "replace.h"
#include "sync.h"
#include "tracker.h"

/* Pages of a file that is small. */
#define FB_REPLACE_MAX	(SZ_1M / PAGE_SIZE)

#ifdef FB_BREAK_REPLACED	/* a fault on purpose: a file replaces another before its data is durable */
#define FB_BREAK_NEEDS	1
#else
#define FB_BREAK_NEEDS	0
#endif

/*
 * Whether only storage can make the file durable. Of an inode that was just read from below nothing is known,
 * so the flag for its first sync counts as well. A truncation that the file's record says is durable.
 *
 * Syncs in flight are counted first: one that fails has given back before what it took.
 */
static bool fb_needs_storage(const struct fb_inode *fi)
{
	return atomic_read_acquire(&fi->syncs_below.in_flight) || test_bit(FB_TRUNCATED, &fi->flags) ||
	       test_bit(FB_NEEDS_SYNC, &fi->flags);
}

/*
 * Whether a file has data, or a truncation, that no sync call has made durable. No write to it begins. What
 * was appended to a page in PMem is durable but for the size, which becomes so here.
 */
static bool fb_is_unsynced(struct fb_inode *fi)
{
	struct fb_size_seen end = fb_see_size(fi);

	return fb_needs_storage(fi) || !fb_track_empty(&fi->tracker) || fb_sync_size(fi, &end, true);
}

/*
 * Whether volatile pages are all that keeps the file from being durable, and are worth a move. Unlike a sync
 * call, which may take the last free page, a rename leaves the cache room: the program may never sync.
 */
static bool fb_is_small(struct fb_inode *fi)
{
	const struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	return READ_ONCE(fsb->mode) == FB_MODE_AUTO && READ_ONCE(fsb->names->on) &&
	       !fb_needs_storage(fi) &&
	       fb_track_count(fi) <= min3(FB_REPLACE_MAX, fb_absorb_max(fsb), fb_cache_room(fsb));
}

/*
 * Data and size become durable in PMem. Returns false if they don't: then the file is as it was, but for
 * pages that have moved. It takes no notice of write errors, which are the next sync call's.
 */
static bool fb_absorb_to_replace(struct fb_inode *fi)
{
	struct fb_size_seen end;
	int err;

	if (!mutex_trylock(&fi->sync_lock))
		return false;
	fb_sync_pages(fi, 0, ULONG_MAX);
	end = fb_see_size(fi);
	err = fb_absorb(fi, FB_RANGE_NOWAIT) ?: fb_sync_size(fi, &end, false);
	mutex_unlock(&fi->sync_lock);
	if (err)
		return false;
	fb_record_use(fi);
	return !fb_is_unsynced(fi);
}

/**
 * fb_may_replace() - see to the data of a file that is about to take the place of another one
 * @fi: the inode, locked
 * @idmap: of the upper mount, for the caller's rights: without the right to write it moves no pages
 *
 * Context: process, with the directories locked. Sleeps; waits for storage on xfs.
 * Return: true if the data are durable; false: the rename has a barrier in the name log.
 */
bool fb_may_replace(struct fb_inode *fi, struct mnt_idmap *idmap)
{
	struct inode *inode = &fi->vfs_inode;

	if (FB_BREAK_NEEDS || !S_ISREG(inode->i_mode))
		return true;
	lockdep_assert_held_write(&inode->i_rwsem);
	if (!fb_is_unsynced(fi))
		return true;
	if (fb_is_small(fi) && fb_may_steer_inode(idmap, inode) && fb_absorb_to_replace(fi))
		return true;
	fb_write_before_replacing(fi->lower);
	return false;
}

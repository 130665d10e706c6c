// SPDX-License-Identifier: GPL-2.0-only
/*
 * The share: how many pages of the cache a file may keep while others need some.
 *
 * So many pages shall be free, and fewer are. Then the share is the largest number such that enough become
 * free if each file with more pages gives up what it has above that number. A file with fewer pages gives up
 * none. This is max-min fair: however many small files there are, they take from the large ones no more
 * than the pages that they have. If enough pages are free, all that a file has is its share.
 *
 * Files are counted by the logarithm of their number of pages. fb_sb->shares has for each such size how many
 * files there are, and how many pages these have. The largest files, down to a size, can keep
 *
 *	(their pages - those that are missing) / their number
 *
 * each. That is not too many, whatever the size is: if some of these files have fewer pages, the others can
 * keep more. So the share is the largest of these numbers. Only files of the share's own size are not told
 * from each other, so the number is less than twofold too small.
 *
 * Resident pages don't count, for no file can give them up; nor pages that no file has yet or any more.
 *
 * Reclaim asks with what it wants free, and spares what files have within their shares (fb_spares()), so that
 * a file above its share is not served with other files' pages. A file that was not used while as many pages
 * were given up as the cache has is idle. It keeps no share: its pages may serve others better.
 *
 * With many large files, the wanted pages are more than one of them has. Then a file that leaves as many
 * pages free for another one as it has is treated as within its share where a wait for storage is at stake
 * (fb_may_have()): the allocator lets it take reserved pages, and reclaim spares pages of ranges that belong
 * in PMem. Otherwise many mappings that fit into the cache would drive each other out.
 *
 * All of it is under fb_sb.lru_lock, which is held anyway where a page enters or leaves a file. The cost
 * there is a few additions. The share itself is computed only where pages are short.
 */
#include <linux/log2.h>

#include "share.h"

static unsigned int fb_share_size(unsigned long pages)
{
	return min_t(unsigned int, ilog2(pages), FB_SHARE_SIZES - 1);
}

static void fb_share_add(struct fb_sb *fsb, unsigned long pages, int sign)
{
	struct fb_share *share;

	if (!pages)
		return;
	share = &fsb->shares[fb_share_size(pages)];
	share->files += sign;
	share->pages += sign * (long)pages;
}

/**
 * fb_share_count() - a file has one page more, or one less, that it could give up
 * @fi: the inode
 * @n: 1 or -1
 */
void fb_share_count(struct fb_inode *fi, int n)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	lockdep_assert_held(&fsb->lru_lock);
	fb_share_add(fsb, fi->nr_shared, -1);
	fi->nr_shared += n;
	fb_share_add(fsb, fi->nr_shared, 1);
}

/* What each of the largest files can keep, if they are @files more and have @pages more than is counted. */
static unsigned long fb_share_from(const struct fb_sb *fsb, long pages, unsigned long files)
{
	unsigned long share = 0;

	for (unsigned int size = fb_share_size(fsb->ps.nr_pages) + 1; size-- > 0;) {
		if (!fsb->shares[size].files)
			continue;
		files += fsb->shares[size].files;
		pages += fsb->shares[size].pages;
		if (pages > 0)
			share = max(share, pages / files);
	}
	return share;
}

/**
 * fb_share() - the share of each file
 * @fsb: the mount
 * @want: how many pages shall be free
 *
 * Return: in pages; less than twofold too small.
 */
unsigned long fb_share(const struct fb_sb *fsb, unsigned long want)
{
	lockdep_assert_held(&fsb->lru_lock);
	return fsb->nr_free < want ? fb_share_from(fsb, (long)fsb->nr_free - (long)want, 0) : ULONG_MAX;
}

/**
 * fb_may_have() - whether a file has no more than its share, or leaves as much free for another one
 * @fi: the inode
 * @want: how many pages shall be free
 */
bool fb_may_have(const struct fb_inode *fi, unsigned long want)
{
	const struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	lockdep_assert_held(&fsb->lru_lock);
	return fi->nr_shared <= fb_share(fsb, want) || fi->nr_shared <= fb_share_from(fsb, fsb->nr_free, 1);
}

/**
 * fb_spares() - whether all pages of a file are spared
 * @fi: the inode
 * @share: from fb_share()
 */
bool fb_spares(const struct fb_inode *fi, unsigned long share)
{
	const struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	lockdep_assert_held(&fsb->lru_lock);
	return fi->nr_shared <= share && fsb->nr_given_up - READ_ONCE(fi->used_at) <= fsb->ps.nr_pages;
}

/**
 * fb_share_given_up() - reclaim has given pages up
 * @fsb: the mount
 * @pages: how many
 */
void fb_share_given_up(struct fb_sb *fsb, unsigned long pages)
{
	spin_lock(&fsb->lru_lock);
	WRITE_ONCE(fsb->nr_given_up, fsb->nr_given_up + pages);
	spin_unlock(&fsb->lru_lock);
}

/**
 * fb_shares_end() - no file has pages any more
 * @fsb: the mount, being taken down
 */
void fb_shares_end(const struct fb_sb *fsb)
{
	for (unsigned int size = 0; size < FB_SHARE_SIZES; size++)
		WARN_ON_ONCE(fsb->shares[size].files || fsb->shares[size].pages);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a range of a file belongs in PMem: it is in a pin (tree.c), or in a MAP_SYNC mapping (vma.c).
 */
#include "belong.h"
#include "tree.h"
#include "vma.h"

/**
 * fb_belongs_in_pmem() - whether any page of a range is in a pin or in a MAP_SYNC mapping
 * @fi: the inode; io_sem is held, in either way
 * @first: first page
 * @last: last page
 */
bool fb_belongs_in_pmem(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	lockdep_assert_held(&fi->io_sem);
	return fb_is_in_a_pin(fi, first, last) || fb_mapped_next(fi, &first, &last, 0, NULL);
}

/**
 * fb_belongs_in_pmem_nowait() - the same where sleeping is not allowed
 * @fi: the inode; io_sem is held
 * @first: first page
 * @last: last page
 *
 * Return: true also if that can't be known now.
 */
bool fb_belongs_in_pmem_nowait(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	lockdep_assert_held(&fi->io_sem);
	return fb_is_in_a_pin(fi, first, last) || fb_mapped_nowait(fi, first, last);
}

/**
 * fb_skip_stretch() - skip a stretch that belongs in PMem
 * @fi: the inode; io_sem is held, in either way
 * @at: where the stretch begins; becomes the page behind it
 * @last: where to end
 *
 * Return: false if no such stretch begins there.
 */
bool fb_skip_stretch(struct fb_inode *fi, pgoff_t *at, pgoff_t last)
{
	pgoff_t first = *at, end = last;
	bool found;

	lockdep_assert_held(&fi->io_sem);
	found = fb_mapped_next(fi, &first, &end, 0, NULL) && first == *at;
	for (unsigned int kind = 0; !found && kind < FB_NR_PIN_KINDS; kind++) {
		first = *at;
		end = last;
		found = fb_pin_next(fi, kind, &first, &end) && first == *at;
	}
	if (found)
		*at = end + 1;
	return found;
}

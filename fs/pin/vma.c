// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the mappings of a file say: which of its ranges are mapped with MAP_SYNC, and which are locked.
 *
 * The kernel keeps all mappings of a file in an interval tree, lower inode->i_mapping->i_mmap. It changes
 * that tree when a part of a mapping is unmapped, moved, split, merged, locked or unlocked, and calls no
 * file system then. So each look-up here searches the kernel's tree; a copy would be wrong after the first
 * mprotect().
 *
 * Lock: i_mmap_rwsem, shared, inside of io_sem and of any lower lock but page table locks. An answer is
 * true of the moment of the look-up. mlock() sets its flag before it looks whether the pages are there. So
 * a task that unmaps a page and looks for locks after that misses none.
 */
#include <linux/interval_tree_generic.h>
#include <linux/mm.h>

#include "vma.h"

/**
 * fb_vma_is_dax() - whether a mapping is a MAP_SYNC mapping made by forebay
 * @fsb: the mount
 * @vma: any mapping of a lower inode
 */
bool fb_vma_is_dax(const struct fb_sb *fsb, const struct vm_area_struct *vma)
{
	const struct fb_vm_ops *ours = READ_ONCE(fsb->vm_ops);

	return (vma->vm_flags & VM_SYNC) && ours && vma->vm_ops == &ours->ops;
}

/**
 * fb_vma_user() - the user that has made a mapping
 * @vma: a mapping of ours
 */
kuid_t fb_vma_user(const struct vm_area_struct *vma)
{
	return KUIDT_INIT((uintptr_t)vma->vm_private_data);
}

static inline unsigned long fb_vma_first(const struct vm_area_struct *vma)
{
	return vma->vm_pgoff;
}

static inline unsigned long fb_vma_last(struct vm_area_struct *vma)
{
	return vma->vm_pgoff + vma_pages(vma) - 1;
}

/* The functions of mm/interval_tree.c are not exported; the template that makes them is a header. */
INTERVAL_TREE_DEFINE(struct vm_area_struct, shared.rb, unsigned long, shared.rb_subtree_last,
		     fb_vma_first, fb_vma_last, static inline, fb_vmas)

static struct vm_area_struct *fb_dax_vma(struct fb_inode *fi, pgoff_t first, pgoff_t last,
					 unsigned long flags, const kuid_t *uid)
{
	struct rb_root_cached *root = &fi->lower->i_mapping->i_mmap;
	const struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct vm_area_struct *vma;

	i_mmap_assert_locked(fi->lower->i_mapping);
	for (vma = fb_vmas_iter_first(root, first, last); vma; vma = fb_vmas_iter_next(vma, first, last)) {
		if (fb_vma_is_dax(fsb, vma) && (vma->vm_flags & flags) == flags &&
		    (!uid || uid_eq(*uid, fb_vma_user(vma))))
			return vma;
	}
	return NULL;
}

/**
 * fb_mapped_next() - the next stretch that is in a MAP_SYNC mapping
 * @fi: the inode
 * @first: where to begin; becomes the first page of the stretch
 * @last: where to end; becomes its last page
 * @flags: VM_LOCKED, or 0 for any mapping
 * @uid: NULL for mappings of any user's; or of this one's
 *
 * Return: whether there is one.
 */
bool fb_mapped_next(struct fb_inode *fi, pgoff_t *first, pgoff_t *last, unsigned long flags,
		    const kuid_t *uid)
{
	struct address_space *mapping = fi->lower->i_mapping;
	struct vm_area_struct *vma;

	if (!test_bit(FB_DAX_MAPPED, &fi->flags) || !mapping_mapped(mapping))
		return false;
	i_mmap_lock_read(mapping);
	vma = fb_dax_vma(fi, *first, *last, flags, uid);
	if (vma) {
		*first = max(*first, fb_vma_first(vma));
		*last = min(*last, fb_vma_last(vma));
	}
	i_mmap_unlock_read(mapping);
	return vma;
}

/**
 * fb_locker_next() - the next user that has locked a page in a MAP_SYNC mapping
 * @fi: the inode
 * @index: the page
 * @uid: the user before, by number, or INVALID_UID; becomes the next user
 *
 * Return: whether there is one.
 */
bool fb_locker_next(struct fb_inode *fi, pgoff_t index, kuid_t *uid)
{
	struct address_space *mapping = fi->lower->i_mapping;
	const struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct vm_area_struct *vma;
	kuid_t next = INVALID_UID;

	if (!test_bit(FB_DAX_MAPPED, &fi->flags) || !mapping_mapped(mapping))
		return false;
	i_mmap_lock_read(mapping);
	for (vma = fb_vmas_iter_first(&mapping->i_mmap, index, index); vma;
	     vma = fb_vmas_iter_next(vma, index, index)) {
		if (!fb_vma_is_dax(fsb, vma) || !(vma->vm_flags & VM_LOCKED) ||
		    (uid_valid(*uid) && uid_lte(fb_vma_user(vma), *uid)))
			continue;
		if (!uid_valid(next) || uid_lt(fb_vma_user(vma), next))
			next = fb_vma_user(vma);
	}
	i_mmap_unlock_read(mapping);
	*uid = next;
	return uid_valid(next);
}

/**
 * fb_mapped_nowait() - whether any page of a range may be in a MAP_SYNC mapping, without sleeping
 * @fi: the inode
 * @first: first page
 * @last: last page
 *
 * Return: true also if that can't be known now.
 */
bool fb_mapped_nowait(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	struct address_space *mapping = fi->lower->i_mapping;
	bool mapped;

	if (!test_bit(FB_DAX_MAPPED, &fi->flags))
		return false;
	if (!i_mmap_trylock_read(mapping))
		return true;
	mapped = fb_dax_vma(fi, first, last, 0, NULL);
	i_mmap_unlock_read(mapping);
	return mapped;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel finds in the struct page of a DAX page: ->mapping and ->index.
 *
 * Linux names a futex that processes share by the inode of the page's mapping and by the page's index
 * (get_futex_key()). A page that moves between the lower page cache and PMem must keep that name, or a
 * waiter is never woken. So a DAX page in an index has its file's page index, and a mapping whose host is
 * the lower inode. The mapping is not the lower inode's own, because set_page_dirty() calls the mapping's
 * dirty_folio(). The lower file system's would take the page for its own. Writers through page table entries
 * and get_user_pages() are known without it (index.c, "stored").
 *
 * A page that left its index while a task holds it gets the mapping fb_gone, which has no host.
 * get_futex_key() then looks the address up again, and finds the page that is mapped there now. With
 * no mapping at all it would return EFAULT. No page table has such a page, so that ends.
 *
 * Lifetime. fb_inode and lower inodes are freed after a grace period, which get_futex_key() and
 * get_user_pages_fast() rely on. set_page_dirty_lock() and others that call into the mapping hold the folio
 * lock and a reference. So a page with references changes its mapping under the folio lock. set_page_dirty()
 * under the page table's lock finds the page mapped, and no mapped page leaves its index. fb_page_unname()
 * is called for each page before the module's text may go.
 *
 * Pages of an emulated device are ordinary memory with owners of their own: they get no mapping. Shared
 * mappings have them as special, so get_user_pages() refuses them there, and a shared futex fails with
 * EFAULT.
 */
#include "../../compat/dax.h"
#include "mapping.h"
#include "page.h"

static const struct address_space_operations fb_dax_aops = {
	.dirty_folio	= noop_dirty_folio,
};

static struct address_space fb_gone = {
	.a_ops	= &fb_dax_aops,
};

/**
 * fb_mapping_init_once() - prepare the mapping of an inode's DAX pages
 * @mapping: it; its host is set when the inode gets its lower inode
 */
void fb_mapping_init_once(struct address_space *mapping)
{
	address_space_init_once(mapping);
	mapping->a_ops = &fb_dax_aops;
}

static void fb_set_mapping(struct page *page, struct address_space *mapping)
{
	bool referenced = compat_dax_has_references(page);

	if (referenced)
		lock_page(page);
	WRITE_ONCE(page->mapping, mapping);
	if (referenced)
		unlock_page(page);
}

/**
 * fb_page_name() - a page is about to enter an index
 * @fi: the inode
 * @page: the page, which no task holds
 * @index: its place in the file
 */
void fb_page_name(struct fb_inode *fi, const struct fb_page *page, pgoff_t index)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct page *struct_page;

	if (fsb->is_volatile)
		return;
	struct_page = pfn_to_page(fb_page_pfn(fsb, page));
	compat_set_page_index(struct_page, index);
	WRITE_ONCE(struct_page->mapping, &fi->dax_mapping);
}

/**
 * fb_page_gone() - a page has left its index, and no page table has it
 * @fsb: the mount
 * @page: the page; some task may hold it. May sleep
 */
void fb_page_gone(struct fb_sb *fsb, const struct fb_page *page)
{
	if (!fsb->is_volatile)
		fb_set_mapping(pfn_to_page(fb_page_pfn(fsb, page)), &fb_gone);
}

/**
 * fb_page_unname() - a page is free, or left to the next mount
 * @fsb: the mount
 * @page: the page. May sleep
 */
void fb_page_unname(struct fb_sb *fsb, const struct fb_page *page)
{
	struct page *struct_page;

	if (fsb->is_volatile)
		return;
	struct_page = pfn_to_page(fb_page_pfn(fsb, page));
	if (READ_ONCE(struct_page->mapping))
		fb_set_mapping(struct_page, NULL);
}

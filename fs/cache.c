// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache device: claimed for this mount, mapped, its store opened, and its
 * free pages handed out.
 *
 * Every page of the device is described by one struct fb_page in an array; a
 * page is free, or belongs to the inode that page->owner names (page_index.c),
 * or waits in recover.c or settle.c for its file's fate.
 *
 * A page that is given up may still be held: by hardware, or by a pipe that got
 * it from vmsplice(). Nobody waits for that but unmount, and not for long. The
 * page has no record any more, but is not handed out again before they let go
 * (held_pages): what they read from it, or store in it, is no other file's. No
 * mapping has it, so nobody new gets hold of it.
 */
#include <linux/blkdev.h>
#include <linux/dax.h>
#include <linux/pfn_t.h>
#include <linux/vmalloc.h>

#include "cache.h"
#include "super.h"
#include "writeback.h"

static int fb_cache_claim(struct fb_sb *fsb, struct fs_context *fc, const char *path)
{
	struct file *file;

	file = bdev_file_open_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE, fsb, NULL);
	if (IS_ERR(file)) {
		int err = PTR_ERR(file);

		if (err == -EBUSY)
			errorf(fc, "forebay: %s is in use: unmount what uses it first", path);
		else if (err == -ENOTBLK)
			errorf(fc, "forebay: %s is no block device", path);
		else
			errorf(fc, "forebay: cannot open cache device %s: error %d", path, err);
		return err;
	}
	fsb->cache_file = file;
	snprintf(fsb->cache_name, sizeof(fsb->cache_name), "%pg", file_bdev(file));
	return 0;
}

/*
 * May what lies behind @pfn be a cache? It must have struct pages, a device's own. The pages of an emulated
 * device (forebay-emu) are ordinary memory: whoever mounts has to know that it is lost with the power.
 */
static int fb_cache_check_pages(struct fb_sb *fsb, struct fs_context *fc, const char *path, pfn_t pfn)
{
	const struct fb_options *opt = fc->fs_private;

	if (pfn_t_devmap(pfn))
		return 0;
	if (!pfn_t_valid(pfn)) {
		errorf(fc, "forebay: %s has no struct pages: convert it with ndctl create-namespace -f -e NAMESPACE -m fsdax --map=mem",
		       path);
		return -EOPNOTSUPP;
	}
	if (!opt->allow_volatile_cache) {
		errorf(fc, "forebay: %s is ordinary memory, an emulated device: what is synced would be lost with the power; to try Forebay out all the same, mount with -o allow_volatile_cache",
		       path);
		return -EOPNOTSUPP;
	}
	pr_warn("%s: the cache is ordinary memory: what is synced goes with the power\n", fsb->cache_name);
	fsb->is_volatile = true;
	return 0;
}

/*
 * Maps the whole device in one piece, as the kernel sees it; the pages of an emulated device need not lie
 * side by side otherwise.
 */
static int fb_cache_map(struct fb_sb *fsb, struct fs_context *fc, const char *path, void **base,
			u64 *size)
{
	struct block_device *bdev = file_bdev(fsb->cache_file);
	u64 offset;
	long pages;
	pfn_t pfn;
	int id;

	fsb->dax = fs_dax_get_by_bdev(bdev, &offset, fsb, NULL);
	if (!fsb->dax) {
		errorf(fc, "forebay: %s has no DAX: it must be persistent memory in fsdax mode (ndctl create-namespace -m fsdax)",
		       path);
		return -EOPNOTSUPP;
	}
	if (!dax_synchronous(fsb->dax)) {
		errorf(fc, "forebay: %s needs a call to the host to make data durable (virtio-pmem); Forebay can't use it",
		       path);
		return -EOPNOTSUPP;
	}
	*size = bdev_nr_bytes(bdev);
	if (*size < PS_MIN_SIZE) {
		errorf(fc, "forebay: %s is too small: %llu bytes, at least %u are needed", path, *size,
		       PS_MIN_SIZE);
		return -EINVAL;
	}
	id = dax_read_lock();
	pages = dax_direct_access(fsb->dax, offset >> PAGE_SHIFT, *size >> PAGE_SHIFT, DAX_ACCESS, base,
				  &pfn);
	dax_read_unlock(id);
	if (pages < 0 || pages < *size >> PAGE_SHIFT) {
		errorf(fc, "forebay: %s cannot be mapped in one piece (%ld pages): bad blocks? see ndctl list -M",
		       path, pages);
		return pages < 0 ? pages : -EOPNOTSUPP;
	}
	fsb->first_pfn = pfn_t_to_pfn(pfn);
	return fb_cache_check_pages(fsb, fc, path, pfn);
}

static int fb_cache_open_store(struct fb_sb *fsb, struct fs_context *fc, const char *path, void *base,
			       u64 size)
{
	u32 flags = dax_write_cache_enabled(fsb->dax) ? PS_OPEN_FLUSH_CACHES : 0;
	enum ps_error err = ps_open(&fsb->ps, base, size, flags);

	if (err == PS_E_NOT_FORMATTED) {
		errorf(fc, "forebay: %s is no Forebay cache yet: run forebay format %s", path, path);
		return -EINVAL;
	}
	if (err) {
		errorf(fc, "forebay: %s: %s; see forebay check %s", path, ps_strerror(err), path);
		return err == PS_E_CORRUPT || err == PS_E_GEOMETRY ? -EUCLEAN : -EINVAL;
	}
	if (fsb->ps.repaired)
		pr_warn("%s: a damaged superblock copy was rewritten from the other\n", fsb->cache_name);
	return 0;
}

/**
 * fb_cache_open() - claim and map the cache device of a mount
 * @fsb: the mount
 * @fc: for messages to the caller of mount(2)
 * @path: the block device
 *
 * Return: 0 or a negative errno, after a message that says what to do. What it
 * has set up by then fb_cache_close() takes down.
 */
int fb_cache_open(struct fb_sb *fsb, struct fs_context *fc, const char *path)
{
	void *base;
	u64 size;
	int err;
	u32 i;

	err = fb_cache_claim(fsb, fc, path);
	if (!err)
		err = fb_cache_map(fsb, fc, path, &base, &size);
	if (!err)
		err = fb_cache_open_store(fsb, fc, path, base, size);
	if (err)
		return err;
	fsb->pages = kvcalloc(fsb->ps.nr_pages, sizeof(*fsb->pages), GFP_KERNEL);
	fsb->files_used = kvcalloc(BITS_TO_LONGS(fsb->ps.nr_files), sizeof(long), GFP_KERNEL);
	if (!fsb->pages || !fsb->files_used)
		return -ENOMEM;
	for (i = 0; i < fsb->ps.nr_pages; i++)
		INIT_LIST_HEAD(&fsb->pages[i].lru);
	return 0;
}

/**
 * fb_cache_close() - give the cache device back
 * @fsb: the mount; nobody uses its pages any more
 */
void fb_cache_close(struct fb_sb *fsb)
{
	kvfree(fsb->pages);
	kvfree(fsb->files_used);
	if (fsb->dax)
		fs_put_dax(fsb->dax, fsb);
	if (fsb->cache_file)
		bdev_fput(fsb->cache_file);
}

/**
 * fb_cache_low() - are free pages so few that more must be made?
 * @fsb: the mount
 *
 * Below an eighth of the device the worker gives clean pages up, and writes
 * pages back to have clean ones. Any context.
 */
bool fb_cache_low(struct fb_sb *fsb)
{
	return READ_ONCE(fsb->nr_free) < fsb->ps.nr_pages / 8;
}

/**
 * fb_page_alloc() - take a free page
 * @fsb: the mount
 *
 * The page is the caller's until fb_page_put_free() or fb_pages_publish().
 * Wakes the worker when pages run low. Doesn't sleep.
 *
 * Return: a page, or NULL if none is free.
 */
struct fb_page *fb_page_alloc(struct fb_sb *fsb)
{
	struct fb_page *page;

	spin_lock(&fsb->lru_lock);
	page = list_first_entry_or_null(&fsb->free_pages, struct fb_page, lru);
	if (page) {
		list_del_init(&page->lru);
		fsb->nr_free--;
	}
	spin_unlock(&fsb->lru_lock);
	if (!page || fb_cache_low(fsb))
		fb_writeback_kick(fsb);
	return page;
}

/**
 * fb_page_put_free() - put a page on the free list
 * @fsb: the mount
 * @page: no inode's, in no mapping; its record is durably free, or was never committed
 */
void fb_page_put_free(struct fb_sb *fsb, struct fb_page *page)
{
	bool held = fb_page_pinned(fsb, page);

	spin_lock(&fsb->lru_lock);
	list_add(&page->lru, held ? &fsb->held_pages : &fsb->free_pages);
	fsb->nr_free += !held;
	spin_unlock(&fsb->lru_lock);
	if (wq_has_sleeper(&fsb->space_wait))
		wake_up_all(&fsb->space_wait);
}

/**
 * fb_take_held() - pages that were given up and that nobody holds any more become free
 * @fsb: the mount
 *
 * Return: whether some are still held.
 */
bool fb_take_held(struct fb_sb *fsb)
{
	struct fb_page *page, *next;
	LIST_HEAD(held);
	bool left;

	spin_lock(&fsb->lru_lock);
	list_splice_init(&fsb->held_pages, &held);
	spin_unlock(&fsb->lru_lock);
	list_for_each_entry_safe(page, next, &held, lru)
		fb_page_put_free(fsb, page);
	spin_lock(&fsb->lru_lock);
	left = !list_empty(&fsb->held_pages);
	spin_unlock(&fsb->lru_lock);
	return left;
}

/**
 * fb_pages_drop() - free pages that wait for a file's fate
 * @fsb: the mount
 * @pages: linked by fb_page->lru, in no index; becomes empty
 */
void fb_pages_drop(struct fb_sb *fsb, struct list_head *pages)
{
	struct fb_page *page, *next;

	list_for_each_entry(page, pages, lru)
		ps_page_free(&fsb->ps, fb_page_number(fsb, page));
	ps_fence(&fsb->ps);
	list_for_each_entry_safe(page, next, pages, lru) {
		list_del_init(&page->lru);
		fb_page_put_free(fsb, page);
	}
}

/**
 * fb_file_record_alloc() - take a free file record
 * @fsb: the mount
 *
 * Return: its number, or FB_NO_FILE if all are in use.
 */
u32 fb_file_record_alloc(struct fb_sb *fsb)
{
	u32 file;

	spin_lock(&fsb->files_lock);
	file = find_next_zero_bit(fsb->files_used, fsb->ps.nr_files, fsb->next_file);
	if (file >= fsb->ps.nr_files)
		file = find_first_zero_bit(fsb->files_used, fsb->ps.nr_files);
	if (file >= fsb->ps.nr_files) {
		file = FB_NO_FILE;
	} else {
		__set_bit(file, fsb->files_used);
		fsb->nr_files_used++;
		fsb->next_file = file + 1;
	}
	spin_unlock(&fsb->files_lock);
	return file;
}

/**
 * fb_file_record_free() - free a file record, with all pages that name it
 * @fsb: the mount
 * @file: its number; durably free when this returns
 */
void fb_file_record_free(struct fb_sb *fsb, u32 file)
{
	ps_file_free(&fsb->ps, file);
	spin_lock(&fsb->files_lock);
	__clear_bit(file, fsb->files_used);
	fsb->nr_files_used--;
	spin_unlock(&fsb->files_lock);
}

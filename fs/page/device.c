// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache device: claimed for this mount, mapped, and its store opened.
 *
 * Every page of the device is described by one struct fb_page in an array. A page is free (alloc.c), or
 * belongs to the inode that page->owner names (index.c), or waits for its file's fate (writeback/recover.c,
 * writeback/deferred.c).
 */
#include <linux/blkdev.h>
#include <linux/dax.h>
#include <linux/vmalloc.h>

#include "../fail.h"
#include "bad.h"
#include "device.h"
#include "mapping.h"
#include "share.h"

/*
 * The device's driver is about to be unbound. That waits until the range is given up (core/pm/ranges.h), so
 * nothing has to be done in haste. Errors of the memory aren't handled here.
 */
static int fb_cache_goes(struct dax_device *dax, u64 offset, u64 len, int flags)
{
	struct fb_sb *fsb = dax_holder(dax);

	if (fsb && flags & MF_MEM_PRE_REMOVE)
		pr_warn("%s: its driver is being unbound: that ends when forebay is unmounted\n",
			fsb->cache_name);
	return -EOPNOTSUPP;
}

static const struct dax_holder_operations fb_cache_holder_operations = {
	.notify_failure	= fb_cache_goes,
};

static int fb_cache_claim(struct fb_sb *fsb, struct fs_context *fc, const char *path)
{
	struct file *file;

	file = bdev_file_open_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE, fsb, NULL);
	if (IS_ERR(file)) {
		int err = PTR_ERR(file);

		if (err == -EBUSY)
			fb_error(fc, "%s is in use: unmount what uses it first", path);
		else if (err == -ENOTBLK)
			fb_error(fc, "%s is no block device", path);
		else if (err == -ENOENT)
			fb_error(fc, "cannot open cache device %s: there is no such device", path);
		else
			fb_error(fc, "cannot open cache device %s: error %d", path, err);
		return err;
	}
	fsb->cache_file = file;
	snprintf(fsb->cache_name, sizeof(fsb->cache_name), "%pg", file_bdev(file));
	return 0;
}

/*
 * Checks that the memory behind @pfn can be a cache: it must have struct pages, a device's own. The pages
 * of an emulated device (forebay-emu) are ordinary memory, which is lost with the power: an option says
 * that this is known.
 */
static int fb_cache_check_pages(struct fb_sb *fsb, struct fs_context *fc, const char *path, compat_pfn_t pfn)
{
	const struct fb_options *opt = fc->fs_private;

	if (compat_pfn_is_device(pfn))
		return 0;
	if (!compat_pfn_has_page(pfn)) {
		fb_error(fc, "%s has no struct pages: convert it with ndctl create-namespace -f -e NAMESPACE -m fsdax --map=mem",
			 path);
		return -EOPNOTSUPP;
	}
	if (!opt->allow_volatile_cache) {
		fb_error(fc, "%s is ordinary memory, an emulated device: what is synced would be lost with the power; to try Forebay out all the same, mount with -o allow_volatile_cache",
			 path);
		return -EOPNOTSUPP;
	}
	pr_warn("%s: the cache is ordinary memory: what is synced goes with the power\n", fsb->cache_name);
	fsb->is_volatile = true;
	return 0;
}

/*
 * How many pages from the device's first one on lie side by side, as the kernel sees them; the page frames
 * of an emulated device need not. Bad blocks don't end the search.
 */
static u64 fb_cache_map_pages(struct fb_sb *fsb, u64 all, void **base, compat_pfn_t *pfn)
{
	u64 done = 0;
	void *addr;
	compat_pfn_t at;
	long got;
	int id = dax_read_lock();

	for (; done < all; done += got) {
		got = fb_bad_step(fsb, done, all, done ? &addr : base, done ? &at : pfn);
		if (got <= 0 || (done && addr != *base + (done << PAGE_SHIFT)) ||
		    (done && compat_pfn_is_device(at) &&
		     compat_pfn_number(at) != compat_pfn_number(*pfn) + done))
			break;
	}
	dax_read_unlock(id);
	return done;
}

static int fb_cache_map(struct fb_sb *fsb, struct fs_context *fc, const char *path, void **base,
			u64 *size)
{
	struct block_device *bdev = file_bdev(fsb->cache_file);
	u64 offset, pages;
	compat_pfn_t pfn;

	fsb->dax = fs_dax_get_by_bdev(bdev, &offset, fsb, &fb_cache_holder_operations);
	if (!fsb->dax) {
		fb_error(fc, "%s has no DAX: it must be persistent memory in fsdax mode (ndctl create-namespace -m fsdax)",
			 path);
		return -EOPNOTSUPP;
	}
	if (!dax_synchronous(fsb->dax)) {
		fb_error(fc, "%s needs a call to the host to make data durable (virtio-pmem); Forebay can't use it",
			 path);
		return -EOPNOTSUPP;
	}
	*size = bdev_nr_bytes(bdev);
	if (*size < PS_MIN_SIZE) {
		fb_error(fc, "%s is too small: %llu bytes, at least %u are needed", path, *size,
			 PS_MIN_SIZE);
		return -EINVAL;
	}
	fsb->dax_start = offset >> PAGE_SHIFT;
	pages = fb_cache_map_pages(fsb, *size >> PAGE_SHIFT, base, &pfn);
	if (pages < *size >> PAGE_SHIFT) {
		fb_error(fc, "%s cannot be mapped in one piece (%llu pages can)", path, pages);
		return -EOPNOTSUPP;
	}
	fsb->first_pfn = compat_pfn_number(pfn);
	return fb_cache_check_pages(fsb, fc, path, pfn);
}

/* Two block devices may lie over the same memory; only one of them can be a cache or a log. */
static int fb_cache_register(struct fb_sb *fsb, struct fs_context *fc, const char *path, const void *base,
			     u64 size)
{
	char other[PM_RANGE_USER];
	int err;

	fsb->range.start = base;
	fsb->range.size = size;
	fsb->range.owner = fsb;
	fsb->range.by_address = true;
	snprintf(fsb->range.user, sizeof(fsb->range.user), "the cache %s of a forebay mount",
		 fsb->cache_name);
	err = pm_range_register(&fsb->range, other);
	if (err == -EBUSY)
		errorf(fc, "forebay: %s: its memory is in use already, as %s; end that first", path, other);
	else if (err)
		fb_error(fc, "cannot use the memory of %s: error %d", path, err);
	return err;
}

static int fb_cache_open_store(struct fb_sb *fsb, struct fs_context *fc, const char *path, void *base,
			       u64 size)
{
	u32 flags = dax_write_cache_enabled(fsb->dax) ? PS_OPEN_FLUSH_CACHES : 0;
	enum ps_error err = ps_open(&fsb->ps, base, size, flags);

	if (err == PS_E_NOT_FORMATTED) {
		fb_error(fc, "%s is no Forebay cache yet: run forebay format %s", path, path);
		return -EINVAL;
	}
	if (err) {
		fb_error(fc, "%s: %s; see forebay check %s", path, ps_strerror(err), path);
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

	err = fb_cache_claim(fsb, fc, path);
	if (!err)
		err = fb_cache_map(fsb, fc, path, &base, &size);
	if (!err)
		err = fb_cache_register(fsb, fc, path, base, size);
	if (!err)
		err = fb_cache_open_store(fsb, fc, path, base, size);
	if (err)
		return err;
	/* Not kvcalloc(), which refuses 2 GiB and more: a cache above 204 GiB has such a table. */
	fsb->pages = vcalloc(fsb->ps.nr_pages, sizeof(*fsb->pages));
	fsb->files_used = kvcalloc(BITS_TO_LONGS(fsb->ps.nr_files), sizeof(long), GFP_KERNEL);
	if (!fsb->pages || !fsb->files_used) {
		fb_error(fc, "%s needs %llu MiB of memory for its tables, and there is not so much",
			 path, (u64)fsb->ps.nr_pages * sizeof(*fsb->pages) >> 20);
		return -ENOMEM;
	}
	fb_bad_find(fsb);
	return 0;
}

/**
 * fb_cache_close() - give the cache device back
 * @fsb: the mount; its pages are not in use any more
 */
void fb_cache_close(struct fb_sb *fsb)
{
	struct fb_page *page;

	list_for_each_entry(page, &fsb->busy_pages, lru)
		fb_page_unname(fsb, page);
	fb_shares_end(fsb);
	vfree(fsb->pages);
	kvfree(fsb->files_used);
	pm_range_unregister(&fsb->range);
	if (fsb->dax)
		fs_put_dax(fsb->dax, fsb);
	if (fsb->cache_file)
		bdev_fput(fsb->cache_file);
}

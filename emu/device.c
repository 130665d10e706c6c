// SPDX-License-Identifier: GPL-2.0-only
/*
 * One emulated device: ordinary memory behind a block device, also accessible by DAX.
 *
 * A tracked device has a volatile write cache, as a disk has: bytes written through the block device
 * are durable after a flush, or with FUA. FUA says nothing of earlier writes. Other devices are untracked,
 * and flushes have no effect on their content.
 */
#include <linux/dax.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../compat/dax.h"
#include "emu.h"

static void emu_write(struct emu_device *emu, struct bio_vec *bv, u64 offset, const void *owner)
{
	void *from = bvec_kmap_local(bv);

	if (emu_tracked(emu))
		emu_shadow_write(emu, offset, from, bv->bv_len, owner);
	else
		memcpy_flushcache(emu->memory + offset, from, bv->bv_len);
	kunmap_local(from);
	emu_delay_write(emu, bv->bv_len);
}

static void emu_read(struct emu_device *emu, struct bio_vec *bv, u64 offset)
{
	memcpy_to_bvec(bv, emu->memory + offset);
	emu_delay_read(emu, bv->bv_len);
}

/* Makes durable what @owner has written: the device, which owns all writes without FUA, or a bio with FUA. */
static void emu_flush(struct emu_device *emu, const void *owner)
{
	wmb();		/* memcpy_flushcache() stores past the caches, unordered */
	if (emu_tracked(emu))
		emu_shadow_fence(emu, owner);
}

static void emu_submit_bio(struct bio *bio)
{
	struct emu_device *emu = bio->bi_bdev->bd_disk->private_data;
	const void *owner = bio->bi_opf & REQ_FUA ? (void *)bio : emu;
	unsigned long start_time = bio_start_io_acct(bio);
	struct bvec_iter iter;
	struct bio_vec bv;

	if (bio->bi_opf & REQ_PREFLUSH)
		emu_flush(emu, emu);
	bio_for_each_segment(bv, bio, iter) {
		if (op_is_write(bio_op(bio)))
			emu_write(emu, &bv, iter.bi_sector << SECTOR_SHIFT, owner);
		else
			emu_read(emu, &bv, iter.bi_sector << SECTOR_SHIFT);
	}
	if (bio->bi_opf & REQ_FUA)
		emu_flush(emu, owner);
	bio_end_io_acct(bio, start_time);
	bio_endio(bio);
}

static int emu_open(struct gendisk *disk, blk_mode_t mode)
{
	struct emu_device *emu = disk->private_data;

	return emu->closed ? -ENXIO : 0;
}

static const struct block_device_operations emu_fops = {
	.owner		= THIS_MODULE,
	.open		= emu_open,
	.submit_bio	= emu_submit_bio,
};

/*
 * Without PFN_DEV: the pages belong to no device. They are contiguous only in the kernel's mapping. Page
 * faults of other file systems ask for page frames in DAX_ACCESS. Where the kernel would map them, they get
 * none; Forebay's modules ask in DAX_RECOVERY_WRITE.
 */
static long emu_direct_access(struct dax_device *dax, pgoff_t page, long pages, enum dax_access_mode mode,
			      void **address, compat_pfn_t *pfn)
{
	struct emu_device *emu = dax_get_private(dax);
	u8 *at = emu->memory + PFN_PHYS(page);

	if (pfn && mode == DAX_ACCESS && compat_dax_takes_memory())
		return -EOPNOTSUPP;
	if (address)
		*address = at;
	if (pfn)
		*pfn = compat_pfn_of_memory(vmalloc_to_pfn(at));
	return min_t(long, pages, PHYS_PFN(emu->size) - page);
}

static int emu_zero_page_range(struct dax_device *dax, pgoff_t page, size_t pages)
{
	struct emu_device *emu = dax_get_private(dax);

	memset(emu->memory + PFN_PHYS(page), 0, PFN_PHYS(pages));
	return 0;
}

static const struct dax_operations emu_dax_operations = {
	.direct_access		= emu_direct_access,
	.zero_page_range	= emu_zero_page_range,
};

/* Allocates the memory, unless that could provoke the OOM killer. */
static int emu_allocate(struct emu_device *emu, int node)
{
	u64 copies = emu_tracked(emu) ? 2 : 1;

	if (emu->size * copies >> PAGE_SHIFT > max(si_mem_available(), 0L))
		return -ENOMEM;
	emu->memory = vzalloc_node(emu->size, node);
	if (!emu->memory)
		return -ENOMEM;
	return emu_tracked(emu) ? emu_shadow_init(emu) : 0;
}

static int emu_add_dax(struct emu_device *emu)
{
	emu->dax = alloc_dax(emu, &emu_dax_operations);
	if (IS_ERR(emu->dax)) {
		int err = PTR_ERR(emu->dax);

		emu->dax = NULL;
		return err;
	}
	set_dax_synchronous(emu->dax);
	dax_write_cache(emu->dax, !(emu->flags & FOREBAY_EMU_CPU_CACHES));
	return dax_add_host(emu->dax, emu->disk);
}

static int emu_add_disk(struct emu_device *emu)
{
	struct queue_limits limits = {
		.logical_block_size	= SECTOR_SIZE,
		.physical_block_size	= PAGE_SIZE,
		.max_hw_sectors		= UINT_MAX,
		.features		= BLK_FEAT_DAX | BLK_FEAT_SYNCHRONOUS | BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA,
	};
	struct gendisk *disk = blk_alloc_disk(&limits, NUMA_NO_NODE);
	int err;

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	emu->disk = disk;
	disk->fops = &emu_fops;
	disk->private_data = emu;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "forebay-emu%u", emu->index);
	set_capacity(disk, emu->size >> SECTOR_SHIFT);
	err = emu_add_dax(emu);
	return err ?: device_add_disk(NULL, disk, emu_attribute_groups);
}

/**
 * emu_device_create() - create a device
 * @want: its description, checked
 * @index: its number, free
 *
 * Context: Under emu_mutex. Sleeps.
 * Return: the device, not in the list yet; -ENOMEM, or another error.
 */
struct emu_device *emu_device_create(const struct forebay_emu_create *want, u32 index)
{
	struct emu_device *emu = kzalloc(sizeof(*emu), GFP_KERNEL);
	int err;

	lockdep_assert_held(&emu_mutex);
	if (!emu)
		return ERR_PTR(-ENOMEM);
	emu->index = index;
	emu->flags = want->flags;
	emu->size = want->bytes;
	emu->delay.read_ns = want->read_delay_ns;
	emu->delay.write_ns = want->write_delay_ns;
	emu->delay.bandwidth = want->bandwidth;
	err = emu_allocate(emu, want->node);
	if (!err)
		err = emu_add_disk(emu);
	if (err) {
		emu_device_free(emu);
		return ERR_PTR(err);
	}
	return emu;
}

/**
 * emu_device_close() - prevent further opens
 * @emu: the device
 *
 * Context: Under emu_mutex. Sleeps.
 * Return: 0, or -EBUSY: the device is open.
 */
int emu_device_close(struct emu_device *emu)
{
	int err = 0;

	lockdep_assert_held(&emu_mutex);
	mutex_lock(&emu->disk->open_mutex);
	if (disk_openers(emu->disk))
		err = -EBUSY;
	else
		emu->closed = true;
	mutex_unlock(&emu->disk->open_mutex);
	return err;
}

/**
 * emu_device_reopen() - permit opens again
 * @emu: the device, closed by emu_device_close()
 *
 * Context: Under emu_mutex. Sleeps.
 */
void emu_device_reopen(struct emu_device *emu)
{
	lockdep_assert_held(&emu_mutex);
	mutex_lock(&emu->disk->open_mutex);
	emu->closed = false;
	mutex_unlock(&emu->disk->open_mutex);
}

/**
 * emu_device_free() - free a device, even a partly created one
 * @emu: the device; it isn't open, and can't be found
 *
 * Context: Task. Sleeps.
 */
void emu_device_free(struct emu_device *emu)
{
	if (emu->disk && disk_live(emu->disk))
		del_gendisk(emu->disk);
	if (emu->dax) {
		dax_remove_host(emu->disk);
		kill_dax(emu->dax);
		put_dax(emu->dax);
	}
	if (emu->disk)
		put_disk(emu->disk);
	emu_shadow_free(emu);
	vfree(emu->memory);
	kfree(emu);
}

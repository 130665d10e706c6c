// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log device: claimed, mapped, its log opened.
 *
 * device-mapper claims devices for all its tables with one and the same holder.
 * So who has which log device is also noted here: two tables may only if they
 * are of the same device, of which one runs at a time (state.c).
 */
#include <linux/dax.h>
#include <linux/mm.h>
#include <linux/pfn_t.h>

#include "writelog.h"

static DEFINE_MUTEX(dwl_registry_lock);
static LIST_HEAD(dwl_registry);

static int dwl_register(struct dwl *w)
{
	struct dwl *other;
	int err = 0;

	mutex_lock(&dwl_registry_lock);
	list_for_each_entry(other, &dwl_registry, registered)
		if (other->cache->bdev == w->cache->bdev &&
		    dm_table_get_md(other->ti->table) != dm_table_get_md(w->ti->table))
			err = -EBUSY;
	if (!err)
		list_add(&w->registered, &dwl_registry);
	mutex_unlock(&dwl_registry_lock);
	return err;
}

/* Sets ti->error, which the kernel's log shows. */
static int dwl_refuse(struct dwl *w, char *why, int err)
{
	w->ti->error = why;
	return err;
}

static int dwl_map_log(struct dwl *w, void **base, u64 *size)
{
	struct block_device *bdev = w->cache->bdev;
	u64 offset = get_start_sect(bdev) << SECTOR_SHIFT;
	long pages;
	pfn_t pfn;
	int id;

	if (!w->cache->dax_dev)
		return dwl_refuse(w, "Log device has no DAX: it must be persistent memory in fsdax mode",
				  -EOPNOTSUPP);
	if (!dax_synchronous(w->cache->dax_dev))
		return dwl_refuse(w, "Log device needs a call to the host to make data durable (virtio-pmem)",
				  -EOPNOTSUPP);
	*size = bdev_nr_bytes(bdev);
	if (!PAGE_ALIGNED(offset) || *size >> PAGE_SHIFT == 0)
		return dwl_refuse(w, "Log device begins within a page, or is smaller than one", -EINVAL);
	/* Positions in the index have 32 bits. */
	if (*size > (u64)WL_DATA_ALIGN << 32)
		return dwl_refuse(w, "Log device is larger than 1 TiB", -EFBIG);
	id = dax_read_lock();
	pages = dax_direct_access(w->cache->dax_dev, offset >> PAGE_SHIFT, *size >> PAGE_SHIFT, DAX_ACCESS,
				  base, &pfn);
	dax_read_unlock(id);
	if (pages < 0 || pages < *size >> PAGE_SHIFT)
		return dwl_refuse(w, "Log device cannot be mapped in one piece: bad blocks? see ndctl list -M",
				  pages < 0 ? pages : -EOPNOTSUPP);
	if (pfn_t_devmap(pfn))
		return 0;
	/* Pages of no device's: an emulated one (forebay-emu). */
	if (!pfn_t_valid(pfn))
		return dwl_refuse(w, "Log device has no struct pages: convert it with ndctl to fsdax with --map=mem",
				  -EOPNOTSUPP);
	if (!w->params.allow_volatile)
		return dwl_refuse(w, "Log device is ordinary memory, lost with the power; to try it out: allow_volatile 1",
				  -EOPNOTSUPP);
	return 0;
}

/* wl_open(), with its error said. */
static int dwl_open_log(struct dwl *w, u32 flags)
{
	enum wl_error err;
	void *base;
	u64 size;
	int ret;

	ret = dwl_map_log(w, &base, &size);
	if (ret)
		return ret;
	if (dax_write_cache_enabled(w->cache->dax_dev))
		flags |= WL_OPEN_FLUSH_CACHES;
	err = wl_open(&w->wl, base, size, flags);
	if (!err) {
		w->gen_bytes = (u64)w->wl.nr_chunks * w->wl.chunk_size;
		return 0;
	}
	DMERR("%pg: %s", w->cache->bdev, wl_strerror(err));
	switch (err) {
	case WL_E_NOT_FORMATTED:
		return dwl_refuse(w, "Log device is no write log yet: run forebay writelog format", -EINVAL);
	case WL_E_PAGESTORE:
		return dwl_refuse(w, "Log device is the cache of a forebay file system", -EINVAL);
	case WL_E_FOREIGN:
		return dwl_refuse(w, "Log device holds something that is no write log", -EINVAL);
	case WL_E_VERSION:
		return dwl_refuse(w, "Log was made by a newer Forebay", -EINVAL);
	default:
		return dwl_refuse(w, "Log is damaged: see forebay writelog check", -EUCLEAN);
	}
}

/**
 * dwl_device_open() - look at the log device, for the constructor
 * @w: the target; both devices claimed
 *
 * Writes nothing: another table of this device may be at work on the log.
 *
 * Return: 0 or a negative errno with ti->error set.
 */
int dwl_device_open(struct dwl *w)
{
	int err;

	if (dwl_register(w))
		return dwl_refuse(w, "Log device is in use by another device", -EBUSY);
	err = dwl_open_log(w, WL_OPEN_READ_ONLY);
	if (err)
		return err;
	/* A block must fit, wherever the last entry ended. */
	if (w->wl.chunk_size < 4 * PAGE_SIZE)
		return dwl_refuse(w, "Log has chunks of less than 16 KiB: format it with larger ones",
				  -EINVAL);
	w->params.slots = min(w->params.slots, w->wl.nr_chunks);
	return 0;
}

void dwl_device_close(struct dwl *w)
{
	if (list_empty(&w->registered))
		return;
	mutex_lock(&dwl_registry_lock);
	list_del(&w->registered);
	mutex_unlock(&dwl_registry_lock);
}

static bool dwl_log_is_empty(const struct dwl *w)
{
	struct wl_gen_info info;
	u32 i;

	for (i = 0; i < w->wl.nr_gens; i++)
		if (wl_gen_read(&w->wl, i, &info) || info.state != WL_GEN_FREE)
			return false;
	return true;
}

/*
 * Is the log another origin's? An origin of another size is the same one grown
 * or shrunk; what would then be out of place, replay finds.
 */
static int dwl_check_origin(struct dwl *w)
{
	static const u8 no_id[WL_ORIGIN_ID_SIZE];
	const u8 *bound = w->wl.super.origin_id, *id = w->params.origin_id;
	bool known = w->params.has_origin_id && memcmp(bound, no_id, sizeof(no_id));

	if (wl_is_bound(&w->wl) && known && memcmp(bound, id, sizeof(no_id)) && !dwl_log_is_empty(w)) {
		DMERR("%pg: holds writes to another origin than %pg", w->cache->bdev, w->origin->bdev);
		return -EINVAL;
	}
	return 0;
}

/* From now on the log is this origin's, of this size; it has been taken. */
void dwl_device_bind(struct dwl *w)
{
	const u8 *bound = w->wl.super.origin_id;
	u8 id[WL_ORIGIN_ID_SIZE];

	memcpy(id, w->params.has_origin_id ? w->params.origin_id : bound, sizeof(id));
	if (le64_to_cpu(w->wl.super.origin_sectors) != w->ti->len || memcmp(bound, id, sizeof(id)))
		wl_bind(&w->wl, w->ti->len, id);
}

/**
 * dwl_device_load() - open the log to use it
 * @w: the target; no other table of its device runs
 *
 * Return: 0, or a negative errno after a message in the kernel's log.
 */
int dwl_device_load(struct dwl *w)
{
	int err = dwl_open_log(w, 0);

	if (err) {
		DMERR("%pg: %s", w->cache->bdev, w->ti->error);
		return err;
	}
	if (is_vmalloc_addr(w->wl.base))
		DMWARN("%pg: the log is ordinary memory: writes that have completed go with the power",
		       w->cache->bdev);
	if (w->wl.repaired)
		DMWARN("%pg: a damaged superblock copy was rewritten from the other", w->cache->bdev);
	return dwl_check_origin(w);
}

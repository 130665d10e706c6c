// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log device: claims and maps it, and opens its log.
 *
 * device-mapper claims the devices of all its tables with the same holder. So the log's memory is
 * registered, too (core/pm/ranges.h), and that of an origin in persistent memory. Two tables may have the
 * memory only if they belong to the same mapped device, of which one table runs at a time (state.c).
 * Neither may two mapped devices have one origin: each would read blocks that the other has newer.
 */
#include <linux/dax.h>
#include <linux/mm.h>

#include "../../compat/pfn.h"
#include "writelog.h"

static DEFINE_MUTEX(dwl_claims_lock);
static LIST_HEAD(dwl_claims);		/* targets, by ->claim, with their origins */

/* Sets ti->error, which device-mapper logs. */
static int dwl_refuse(struct dwl *w, char *why, int err)
{
	w->ti->error = why;
	return err;
}

static int dwl_map_log(struct dwl *w, void **base, u64 *size)
{
	struct block_device *bdev = w->log->bdev;
	u64 offset = get_start_sect(bdev) << SECTOR_SHIFT;
	long pages;
	compat_pfn_t pfn;
	int id;

	if (!w->log->dax_dev)
		return dwl_refuse(w, "Log device has no DAX: it must be persistent memory in fsdax mode",
				  -EOPNOTSUPP);
	if (!dax_synchronous(w->log->dax_dev))
		return dwl_refuse(w, "Log device needs a call to the host to make data durable (virtio-pmem)",
				  -EOPNOTSUPP);
	*size = bdev_nr_bytes(bdev);
	if (!PAGE_ALIGNED(offset) || *size >> PAGE_SHIFT == 0)
		return dwl_refuse(w, "Log device begins within a page, or is smaller than one", -EINVAL);
	/* Positions in the index have 32 bits. */
	if (*size > (u64)WL_DATA_ALIGN << 32)
		return dwl_refuse(w, "Log device is larger than 1 TiB", -EFBIG);
	id = dax_read_lock();
	pages = dax_direct_access(w->log->dax_dev, offset >> PAGE_SHIFT, *size >> PAGE_SHIFT, DAX_ACCESS,
				  base, &pfn);
	dax_read_unlock(id);
	if (pages < 0 || pages < *size >> PAGE_SHIFT)
		return dwl_refuse(w, "Log device cannot be mapped in one piece: bad blocks? see ndctl list -M",
				  pages < 0 ? pages : -EOPNOTSUPP);
	if (compat_pfn_is_device(pfn))
		return 0;
	/* Pages that belong to no device: an emulated one (forebay-emu). */
	if (!compat_pfn_has_page(pfn))
		return dwl_refuse(w, "Log device has no struct pages: convert it with ndctl to fsdax with --map=mem",
				  -EOPNOTSUPP);
	if (!w->params.allow_volatile)
		return dwl_refuse(w, "Log device is ordinary memory, lost with the power; to try it out: allow_volatile 1",
				  -EOPNOTSUPP);
	return 0;
}

/* Registers the memory of @dev (@what it is to the target) for @owner alone. */
static int dwl_register(struct dwl *w, struct pm_range *range, const void *owner, const char *what,
			const struct dm_dev *dev)
{
	char other[PM_RANGE_USER];
	int err;

	range->owner = owner;
	snprintf(range->user, sizeof(range->user), "the %s %pg of %s", what, dev->bdev,
		 dm_disk(dm_table_get_md(w->ti->table))->disk_name);
	err = pm_range_register(range, other);
	if (err == -EBUSY)
		DMERR("%pg: its memory is in use already, as %s", dev->bdev, other);
	else if (err)
		DMERR("%pg: its memory can't be used: error %d", dev->bdev, err);
	return err;
}

static int dwl_register_log(struct dwl *w, const void *base, u64 size)
{
	w->range.start = base;
	w->range.size = size;
	w->range.by_address = true;
	if (dwl_register(w, &w->range, dm_table_get_md(w->ti->table), "log", w->log))
		return dwl_refuse(w, "Log device is in use by another device", -EBUSY);
	return 0;
}

/* Registers a piece of the origin's memory. */
static int dwl_register_piece(struct dwl *w, const void *base, u64 size)
{
	struct dwl_piece *piece = kzalloc(sizeof(*piece), GFP_KERNEL);

	if (!piece)
		return dwl_refuse(w, "Not enough memory", -ENOMEM);
	piece->next = w->origin_pieces;
	w->origin_pieces = piece;
	piece->range.start = base;
	piece->range.size = size;
	/*
	 * Another owner than that of the logs of this mapped device: its tables may share an origin, but
	 * the origin of none may overlap a log.
	 */
	if (dwl_register(w, &piece->range, dm_disk(dm_table_get_md(w->ti->table)), "origin", w->origin))
		return dwl_refuse(w, "Origin is in use as a log, a cache, or another origin", -EBUSY);
	return 0;
}

/*
 * Registers the memory of an origin that is persistent memory, so that writeback can't change a log or a
 * cache. A device that doesn't pass DAX through hides its memory, and isn't looked into.
 */
static int dwl_register_origin(struct dwl *w)
{
	u64 offset = get_start_sect(w->origin->bdev) << SECTOR_SHIFT, page = 0;
	u64 pages = DIV_ROUND_UP_ULL(w->ti->len << SECTOR_SHIFT, PAGE_SIZE);
	int err = 0;

	if (!w->origin->dax_dev || !PAGE_ALIGNED(offset))
		return 0;
	while (page < pages && !err) {
		void *base;
		int id = dax_read_lock();
		/* For recovery: bad blocks don't end a piece. */
		long more = dax_direct_access(w->origin->dax_dev, (offset >> PAGE_SHIFT) + page, pages - page,
					      DAX_RECOVERY_WRITE, &base, NULL);

		dax_read_unlock(id);
		if (more <= 0)
			break;
		err = dwl_register_piece(w, base, (u64)more << PAGE_SHIFT);
		page += more;
	}
	return err;
}

/* Claims the origin for the tables of this mapped device. */
static int dwl_claim_origin(struct dwl *w)
{
	struct mapped_device *md = dm_table_get_md(w->ti->table);
	const struct dwl *other;
	bool taken = false;

	mutex_lock(&dwl_claims_lock);
	list_for_each_entry(other, &dwl_claims, claim)
		taken |= other->origin->bdev == w->origin->bdev && dm_table_get_md(other->ti->table) != md;
	if (!taken)
		list_add(&w->claim, &dwl_claims);
	mutex_unlock(&dwl_claims_lock);
	return taken ? dwl_refuse(w, "Origin has a write log already", -EBUSY) : 0;
}

/* Calls wl_open(), and reports its error. */
static int dwl_open_log(struct dwl *w, void *base, u64 size, u32 flags)
{
	enum wl_error err;

	if (dax_write_cache_enabled(w->log->dax_dev))
		flags |= WL_OPEN_FLUSH_CACHES;
	err = wl_open(&w->wl, base, size, flags);
	if (!err) {
		w->gen_bytes = (u64)w->wl.nr_chunks * w->wl.chunk_size;
		return 0;
	}
	DMERR("%pg: %s", w->log->bdev, wl_strerror(err));
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
 * dwl_device_open() - examine the devices, in the constructor
 * @w: the target; both devices are open
 *
 * Writes nothing: another table of this mapped device may be using the log.
 *
 * Context: Task. Sleeps.
 * Return: 0 or a negative errno with ti->error set.
 */
int dwl_device_open(struct dwl *w)
{
	void *base;
	u64 size;
	int err;

	err = dwl_map_log(w, &base, &size);
	if (!err)
		err = dwl_register_log(w, base, size);
	if (!err)
		err = dwl_register_origin(w);
	if (!err)
		err = dwl_claim_origin(w);
	if (!err)
		err = dwl_open_log(w, base, size, WL_OPEN_READ_ONLY);
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
	struct dwl_piece *piece;

	mutex_lock(&dwl_claims_lock);
	list_del_init(&w->claim);
	mutex_unlock(&dwl_claims_lock);
	while ((piece = w->origin_pieces)) {
		w->origin_pieces = piece->next;
		pm_range_unregister(&piece->range);
		kfree(piece);
	}
	pm_range_unregister(&w->range);
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
 * Checks whether the log belongs to another origin. An origin of another size is the same one, grown or
 * shrunk; replay finds writes beyond its end.
 */
static int dwl_check_origin(struct dwl *w)
{
	static const u8 no_id[WL_ORIGIN_ID_SIZE];
	const u8 *bound = w->wl.super.origin_id, *id = w->params.origin_id;
	bool known = w->params.has_origin_id && memcmp(bound, no_id, sizeof(no_id));

	if (w->params.any_origin)
		return 0;
	if (wl_is_bound(&w->wl) && known && memcmp(bound, id, sizeof(no_id)) && !dwl_log_is_empty(w)) {
		DMERR("%pg: holds writes to another origin than %pg", w->log->bdev, w->origin->bdev);
		return -EINVAL;
	}
	return 0;
}

/*
 * Binds the log to this origin and its size, after the log was taken. If the table doesn't name the origin,
 * the log keeps its origin's name as long as it holds writes: an empty log may have got another origin.
 */
void dwl_device_bind(struct dwl *w)
{
	const u8 *bound = w->wl.super.origin_id;
	u8 id[WL_ORIGIN_ID_SIZE] = { };

	if (w->params.has_origin_id)
		memcpy(id, w->params.origin_id, sizeof(id));
	else if (!w->params.any_origin && !dwl_log_is_empty(w))
		memcpy(id, bound, sizeof(id));
	if (le64_to_cpu(w->wl.super.origin_sectors) != w->ti->len || memcmp(bound, id, sizeof(id)))
		wl_bind(&w->wl, w->ti->len, id);
}

/**
 * dwl_device_load() - open the log for use
 * @w: the target; no other table of its mapped device runs
 *
 * Context: Task, before the first resume. Sleeps.
 * Return: 0, or a negative errno after a message in the kernel's log.
 */
int dwl_device_load(struct dwl *w)
{
	void *base;
	u64 size;
	int err;

	err = dwl_map_log(w, &base, &size);
	/* Only what the constructor registered is this table's own. A dm-linear below may have changed. */
	if (!err && (base != w->range.start || size != w->range.size))
		err = dwl_refuse(w, "Log device leads to other memory than when the table was loaded",
				 -EBUSY);
	if (!err)
		err = dwl_open_log(w, base, size, 0);
	if (err) {
		DMERR("%pg: %s", w->log->bdev, w->ti->error);
		return err;
	}
	if (is_vmalloc_addr(w->wl.base))
		DMWARN("%pg: the log is ordinary memory: writes that have completed go with the power",
		       w->log->bdev);
	if (w->wl.repaired)
		DMWARN("%pg: a damaged superblock copy was rewritten from the other", w->log->bdev);
	return dwl_check_origin(w);
}

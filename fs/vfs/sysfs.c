// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/fs/forebay/DEVICE/: what an administrator sees of a mount, one value a
 * file; docs/sysfs.md lists them. Nothing here takes a lock: each value is true by
 * itself, two of them may be of different moments.
 */
#include <linux/sysfs.h>

#include "../names/names.h"
#include "../sync/absorb.h"
#include "params.h"
#include "sysfs.h"

static struct kset *fb_kset;

struct fb_attribute {
	struct attribute attr;
	ssize_t (*show)(struct fb_sb *fsb, char *buf);
};

#define FB_ATTRIBUTE_MODE(file, access, format, value)				\
static ssize_t file##_show(struct fb_sb *fsb, char *buf)			\
{										\
	return sysfs_emit(buf, format "\n", value);				\
}										\
static const struct fb_attribute fb_attr_##file = {				\
	.attr = { .name = #file, .mode = access }, .show = file##_show }

#define FB_ATTRIBUTE(file, format, value)	FB_ATTRIBUTE_MODE(file, 0444, format, value)

#define FB_COUNTER_ATTRIBUTE(file, counter)					\
	FB_ATTRIBUTE(file, "%lld", percpu_counter_sum_positive(&fsb->counters[counter]))

FB_ATTRIBUTE(cache_uuid, "%pU", fsb->ps.super.cache_uuid);
FB_ATTRIBUTE(lower_uuid, "%pU", fsb->ps.super.lower_uuid);
FB_ATTRIBUTE(mode, "%s", fb_mode_name(fsb->mode));
FB_ATTRIBUTE(persistence, "%s", fsb->ps.flush_caches ? "memory-controller" : "cpu-cache");
FB_ATTRIBUTE(volatile_cache, "%d", fsb->is_volatile);
FB_ATTRIBUTE(pages_total, "%u", fsb->ps.nr_pages);
FB_ATTRIBUTE(pages_free, "%lu", READ_ONCE(fsb->nr_free));
FB_ATTRIBUTE(pages_clean, "%lu", READ_ONCE(fsb->nr_clean));
FB_ATTRIBUTE(pages_out_of_sync, "%lu", READ_ONCE(fsb->nr_out_of_sync));
FB_ATTRIBUTE(pages_dirty, "%ld", atomic_long_read(&fsb->nr_dirty));
FB_ATTRIBUTE(pages_unplaced, "%ld", atomic_long_read(&fsb->nr_unplaced));
FB_ATTRIBUTE(pages_busy, "%lu", READ_ONCE(fsb->nr_busy));
FB_ATTRIBUTE(pages_lost, "%lu", READ_ONCE(fsb->nr_lost));
FB_ATTRIBUTE(pages_pinned, "%lu", READ_ONCE(fsb->pins.charged));
FB_ATTRIBUTE(pin_limit, "%lu", READ_ONCE(fsb->pins.max));
FB_ATTRIBUTE(pin_limit_user, "%lu", READ_ONCE(fsb->pins.max_of_user));
FB_ATTRIBUTE(files_total, "%u", fsb->ps.nr_files);
FB_ATTRIBUTE(files_used, "%u", READ_ONCE(fsb->nr_files_used));
FB_ATTRIBUTE(lower_sync_ns, "%llu", READ_ONCE(fsb->lower_cost.call));
FB_ATTRIBUTE(lower_sync_page_ns, "%llu", READ_ONCE(fsb->lower_cost.page));
FB_ATTRIBUTE(absorb_ns, "%llu", READ_ONCE(fsb->absorbed_cost.call));
FB_ATTRIBUTE(absorb_page_ns, "%llu", READ_ONCE(fsb->absorbed_cost.page));
FB_ATTRIBUTE(absorb_max, "%lu", fsb->mode == FB_MODE_AUTO ? fb_absorb_max(fsb) : 0);
FB_ATTRIBUTE(writeback_age, "%u", READ_ONCE(fsb->writeback_age));
FB_ATTRIBUTE(last_error, "%d", atomic_read(&fsb->nr_failing) ? READ_ONCE(fsb->last_error) : 0);
FB_COUNTER_ATTRIBUTE(pages_recovered, FB_PAGES_RECOVERED);
FB_COUNTER_ATTRIBUTE(syncs_absorbed, FB_SYNCS_ABSORBED);
FB_COUNTER_ATTRIBUTE(syncs_lower, FB_SYNCS_LOWER);
FB_COUNTER_ATTRIBUTE(pages_absorbed, FB_PAGES_ABSORBED);
FB_COUNTER_ATTRIBUTE(pages_written_back, FB_PAGES_WRITTEN_BACK);
FB_COUNTER_ATTRIBUTE(pages_reclaimed, FB_PAGES_RECLAIMED);
FB_COUNTER_ATTRIBUTE(cache_full, FB_CACHE_FULL);
FB_COUNTER_ATTRIBUTE(writeback_errors, FB_WRITEBACK_ERRORS);

/* For root: around a read, they would tell whether it found pages in PMem. */
#define FB_BYTES_ATTRIBUTE(file, counter)					\
	FB_ATTRIBUTE_MODE(file, 0400, "%lld", percpu_counter_sum_positive(&fsb->counters[counter]))

FB_BYTES_ATTRIBUTE(copied_in, FB_COPIED_IN);
FB_BYTES_ATTRIBUTE(copied_out, FB_COPIED_OUT);
FB_BYTES_ATTRIBUTE(copied_back, FB_COPIED_BACK);
FB_BYTES_ATTRIBUTE(mapped_stores, FB_MAPPED_STORES);
FB_ATTRIBUTE_MODE(copy_limit, 0400, "%llu", READ_ONCE(fsb->copies.limits.all));
FB_ATTRIBUTE_MODE(copy_limit_user, 0400, "%llu", READ_ONCE(fsb->copies.limits.user));
FB_ATTRIBUTE_MODE(copy_tasks, 0400, "%u", READ_ONCE(fsb->copies.limits.tasks));

/* none, on, off (for a moment), or why the file system below can't have a log. */
static ssize_t names_state_show(struct fb_sb *fsb, char *buf)
{
	const struct fb_names *names = fsb->names;

	if (!names)
		return sysfs_emit(buf, "none\n");
	if (names->unfit)
		return sysfs_emit(buf, "unfit: %s\n", names->unfit);
	return sysfs_emit(buf, "%s\n", READ_ONCE(names->on) ? "on" : "off");
}

static const struct fb_attribute fb_attr_names_state = {
	.attr = { .name = "names_state", .mode = 0444 }, .show = names_state_show };

/* 0 without a name log. */
#define FB_NAMES_ATTRIBUTE(file, value)						\
	FB_ATTRIBUTE(file, "%llu", fsb->names ? (u64)(value) : 0ULL)

FB_NAMES_ATTRIBUTE(names_size, fsb->names->nl.nr_lines * NL_LINE);
FB_NAMES_ATTRIBUTE(names_used, (READ_ONCE(fsb->names->nl.next) - READ_ONCE(fsb->names->nl.trim)) * NL_LINE);
FB_NAMES_ATTRIBUTE(names_recorded, atomic64_read(&fsb->names->nr_records));
FB_NAMES_ATTRIBUTE(names_barriers, atomic64_read(&fsb->names->nr_barriers));
FB_NAMES_ATTRIBUTE(names_switched_off, atomic64_read(&fsb->names->nr_off));
FB_NAMES_ATTRIBUTE(names_replayed, fsb->names->replayed);

/* As docs/sysfs.md says. */
#define FB_LATENCY_ATTRIBUTE(file, kind)					\
static ssize_t file##_show(struct fb_sb *fsb, char *buf)			\
{										\
	int n = latency_print(&fsb->sync_latencies[kind], buf, PAGE_SIZE - 1);	\
										\
	return n + sysfs_emit_at(buf, n, "\n");					\
}										\
static const struct fb_attribute fb_attr_##file = {				\
	.attr = { .name = #file, .mode = 0444 }, .show = file##_show }

FB_LATENCY_ATTRIBUTE(sync_latency_memory, FB_SYNC_MEMORY);
FB_LATENCY_ATTRIBUTE(sync_latency_move, FB_SYNC_MOVE);
FB_LATENCY_ATTRIBUTE(sync_latency_storage, FB_SYNC_STORAGE);

static const struct attribute *fb_attrs[] = {
	&fb_attr_cache_uuid.attr, &fb_attr_lower_uuid.attr, &fb_attr_mode.attr,
	&fb_attr_persistence.attr, &fb_attr_volatile_cache.attr,
	&fb_attr_pages_total.attr, &fb_attr_pages_free.attr,
	&fb_attr_pages_clean.attr, &fb_attr_pages_out_of_sync.attr, &fb_attr_pages_dirty.attr,
	&fb_attr_pages_unplaced.attr, &fb_attr_pages_lost.attr, &fb_attr_pages_busy.attr,
	&fb_attr_pages_pinned.attr,
	&fb_attr_pin_limit.attr, &fb_attr_pin_limit_user.attr,
	&fb_attr_files_total.attr, &fb_attr_files_used.attr,
	&fb_attr_lower_sync_ns.attr, &fb_attr_lower_sync_page_ns.attr,
	&fb_attr_absorb_ns.attr, &fb_attr_absorb_page_ns.attr, &fb_attr_absorb_max.attr,
	&fb_attr_writeback_age.attr,
	&fb_attr_last_error.attr, &fb_attr_pages_recovered.attr, &fb_attr_syncs_absorbed.attr,
	&fb_attr_syncs_lower.attr, &fb_attr_pages_absorbed.attr, &fb_attr_pages_written_back.attr,
	&fb_attr_pages_reclaimed.attr, &fb_attr_cache_full.attr, &fb_attr_writeback_errors.attr,
	&fb_attr_copied_in.attr, &fb_attr_copied_out.attr, &fb_attr_copied_back.attr,
	&fb_attr_mapped_stores.attr, &fb_attr_copy_limit.attr, &fb_attr_copy_limit_user.attr,
	&fb_attr_copy_tasks.attr,
	&fb_attr_names_state.attr, &fb_attr_names_size.attr, &fb_attr_names_used.attr,
	&fb_attr_names_recorded.attr, &fb_attr_names_barriers.attr, &fb_attr_names_switched_off.attr,
	&fb_attr_names_replayed.attr,
	&fb_attr_sync_latency_memory.attr, &fb_attr_sync_latency_move.attr,
	&fb_attr_sync_latency_storage.attr,
	NULL
};

static ssize_t fb_attr_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct fb_sb *fsb = container_of(kobj, struct fb_sb, kobj);

	return container_of(attr, struct fb_attribute, attr)->show(fsb, buf);
}

static void fb_kobj_release(struct kobject *kobj)
{
	complete(&container_of(kobj, struct fb_sb, kobj)->kobj_gone);
}

static const struct sysfs_ops fb_sysfs_ops = { .show = fb_attr_show };

static const struct kobj_type fb_ktype = {
	.sysfs_ops	= &fb_sysfs_ops,
	.release	= fb_kobj_release,
};

/**
 * fb_sysfs_add() - show a mount
 * @fsb: the mount
 *
 * Return: 0 or a negative errno; then, too, fb_sysfs_remove() is called at unmount.
 */
int fb_sysfs_add(struct fb_sb *fsb)
{
	int err;

	init_completion(&fsb->kobj_gone);
	fsb->kobj.kset = fb_kset;
	err = kobject_init_and_add(&fsb->kobj, &fb_ktype, NULL, "%s", fsb->cache_name);
	return err ?: sysfs_create_files(&fsb->kobj, fb_attrs);
}

/**
 * fb_sysfs_remove() - hide a mount; no task reads its values when this returns
 * @fsb: the mount
 */
void fb_sysfs_remove(struct fb_sb *fsb)
{
	kobject_del(&fsb->kobj);
	kobject_put(&fsb->kobj);
	wait_for_completion(&fsb->kobj_gone);
}

int fb_sysfs_init(void)
{
	fb_kset = kset_create_and_add("forebay", NULL, fs_kobj);
	return fb_kset ? 0 : -ENOMEM;
}

void fb_sysfs_exit(void)
{
	kset_unregister(fb_kset);
}

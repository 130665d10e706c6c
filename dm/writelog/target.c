// SPDX-License-Identifier: GPL-2.0-only
/*
 * The target forebay-wlog, as device-mapper sees it: constructor, limits, messages, module.
 *
 *	0 SECTORS forebay-wlog ORIGIN LOG [N KEY VALUE ...]
 *
 * docs/writelog.md describes options, messages and the status line. A target name may have 15
 * characters: "forebay-writelog", the module's name, has 16.
 */
#include <linux/module.h>

#include "../../compat/limits.h"
#include "writeback.h"

static int dwl_init(struct dwl *w)
{
	w->stats = alloc_percpu(struct dwl_stats);
	if (!w->stats)
		return -ENOMEM;
	dwl_reads_init(w);
	mutex_init(&w->gen_lock);
	mutex_init(&w->clean_lock);
	mutex_init(&w->aside.lock);
	spin_lock_init(&w->space.lock);
	spin_lock_init(&w->direct_lock);
	bio_list_init(&w->direct);
	INIT_LIST_HEAD(&w->space.waiters);
	INIT_LIST_HEAD(&w->claim);
	init_waitqueue_head(&w->gen_freed);
	init_waitqueue_head(&w->kick);
	init_waitqueue_head(&w->bios_done);
	init_completion(&w->flush_done);
	return init_srcu_struct(&w->srcu);
}

static void dwl_free(struct dwl *w)
{
	dwl_worker_destroy(w);
	dwl_free_state(w);
	dwl_origin_exit(w);
	dwl_device_close(w);
	if (w->log)
		dm_put_device(w->ti, w->log);
	if (w->origin)
		dm_put_device(w->ti, w->origin);
	cleanup_srcu_struct(&w->srcu);
	free_percpu(w->stats);
	kfree(w);
}

static int dwl_get_devices(struct dwl *w, char **argv)
{
	int err;

	err = dm_get_device(w->ti, argv[0], dm_table_get_mode(w->ti->table), &w->origin);
	if (err) {
		w->ti->error = "Origin cannot be opened";
		return err;
	}
	err = dm_get_device(w->ti, argv[1], dm_table_get_mode(w->ti->table), &w->log);
	if (err) {
		w->ti->error = "Log device cannot be opened";
	} else if (w->log->bdev == w->origin->bdev) {
		w->ti->error = "Log device and origin are the same";
		err = -EINVAL;
	} else if (bdev_read_only(w->log->bdev) || bdev_read_only(w->origin->bdev)) {
		/* The block layer would only warn of writes to it. */
		w->ti->error = "Log device or origin is read-only";
		err = -EROFS;
	}
	return err;
}

static int dwl_construct(struct dwl *w, unsigned int argc, char **argv)
{
	int err = dwl_get_devices(w, argv);

	if (!err)
		err = dwl_params_parse(w, argc - 2, argv + 2);
	if (!err && w->ti->len > bdev_nr_sectors(w->origin->bdev)) {
		w->ti->error = "Origin is smaller than the device";
		err = -EINVAL;
	}
	if (!err && w->ti->len & ((1 << w->block_shift) - 1)) {
		w->ti->error = "Length is no multiple of the block size";
		err = -EINVAL;
	}
	if (!err)
		err = dwl_device_open(w);
	if (err)
		return err;
	err = dwl_origin_init(w);
	if (!err)
		err = dwl_worker_create(w);
	if (err)
		w->ti->error = "Not enough memory";
	return err ? err : dm_set_target_max_io_len(w->ti, DWL_SEGMENT);
}

static int dwl_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dwl *w;
	int err;

	if (argc < 2) {
		ti->error = "Two devices are needed: origin and log";
		return -EINVAL;
	}
	w = kzalloc(sizeof(*w), GFP_KERNEL);
	if (!w || dwl_init(w)) {
		ti->error = "Not enough memory";
		if (w)
			free_percpu(w->stats);
		kfree(w);
		return -ENOMEM;
	}
	w->ti = ti;
	err = dwl_construct(w, argc, argv);
	if (err) {
		dwl_free(w);
		return err;
	}
	ti->private = w;
	ti->per_io_data_size = sizeof(struct dwl_bio);
	ti->num_discard_bios = 1;
	ti->num_write_zeroes_bios = 1;
	return 0;
}

static void dwl_dtr(struct dm_target *ti)
{
	dwl_free(ti->private);
}

static int dwl_message(struct dm_target *ti, unsigned int argc, char **argv, char *result,
		       unsigned int maxlen)
{
	struct dwl *w = ti->private;

	if (argc == 1 && !strcmp(argv[0], "flush"))
		return dwl_flush(w);
	if (argc == 1 && !strcmp(argv[0], "cleaner"))
		return dwl_clean(w);
	if (argc == 2 && !strcmp(argv[0], "latency") && !strcmp(argv[1], "show"))
		return dwl_latency_print(w, result, maxlen);
	if (argc == 2 && !strcmp(argv[0], "latency") && (!strcmp(argv[1], "on") || !strcmp(argv[1], "off"))) {
		WRITE_ONCE(w->latency, !strcmp(argv[1], "on"));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[0], "set"))
		return dwl_params_set(w, argv[1], argv[2]);
	DMERR("%s: no such message: %s", dm_table_device_name(ti->table), argv[0]);
	return -EINVAL;
}

static int dwl_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct dwl *w = ti->private;

	return fn(ti, w->origin, 0, ti->len, data);
}

static void dwl_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct dwl *w = ti->private;

	/* Completed writes are durable: no flush is needed. */
	limits->features &= ~(BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA);
	limits->logical_block_size = max(limits->logical_block_size, w->params.block_size);
	limits->physical_block_size = max(limits->physical_block_size, w->params.block_size);
	limits->io_min = max(limits->io_min, w->params.block_size);
	/* Each block of the bio costs an index lookup or an index entry. */
	limits->max_hw_discard_sectors = min(limits->max_hw_discard_sectors, DWL_MAX_DISCARD);
	compat_limit_zeroes(limits, round_down(min(limits->max_write_zeroes_sectors, SZ_16M >> SECTOR_SHIFT),
					       1 << w->block_shift));
	limits->discard_granularity = max(limits->discard_granularity, w->params.block_size);
	limits->discard_alignment = round_down(limits->discard_alignment, w->params.block_size);
}

static struct target_type dwl_target = {
	.name = "forebay-wlog",
	.version = { 1, 0, 0 },
	.module = THIS_MODULE,
	.features = DM_TARGET_SINGLETON | DM_TARGET_ALWAYS_WRITEABLE | DM_TARGET_NOWAIT,
	.ctr = dwl_ctr,
	.dtr = dwl_dtr,
	.map = dwl_map,
	.end_io = dwl_end_io,
	.preresume = dwl_preresume,
	.presuspend = dwl_presuspend,
	.presuspend_undo = dwl_presuspend_undo,
	.postsuspend = dwl_postsuspend,
	.status = dwl_status,
	.message = dwl_message,
	.iterate_devices = dwl_iterate_devices,
	.io_hints = dwl_io_hints,
};

static int __init dwl_module_init(void)
{
	int err = dwl_index_module_init();

	if (err)
		return err;
	err = dm_register_target(&dwl_target);
	if (err)
		dwl_index_module_exit();
	return err;
}

static void __exit dwl_module_exit(void)
{
	dm_unregister_target(&dwl_target);
	dwl_index_module_exit();
}

module_init(dwl_module_init);
module_exit(dwl_module_exit);

MODULE_DESCRIPTION("Forebay: a write cache with a parallel log in persistent memory");
MODULE_LICENSE("GPL");
MODULE_ALIAS("dm-forebay-wlog");
MODULE_SOFTDEP("pre: crc32c");

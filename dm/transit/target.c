// SPDX-License-Identifier: GPL-2.0-only
/*
 * The target forebay-transit, as device-mapper sees it: constructor, limits, messages, module.
 *
 *	0 SECTORS forebay-transit DEVICE [N KEY VALUE ...]
 *
 * docs/transit.md describes options, messages and the status line.
 */
#include <linux/module.h>

#include "../../compat/limits.h"
#include "policy.h"

static int dtc_construct(struct dtc *t, unsigned int argc, char **argv)
{
	int err;

	err = dm_get_device(t->ti, argv[0], dm_table_get_mode(t->ti->table), &t->lower);
	if (err) {
		t->ti->error = "The device cannot be opened";
		return err;
	}
	/* The block layer would only warn of writes to it. */
	if (bdev_read_only(t->lower->bdev)) {
		t->ti->error = "The device is read-only";
		return -EROFS;
	}
	err = dtc_params_parse(t, argc - 1, argv + 1);
	if (err)
		return err;
	if (t->ti->len > bdev_nr_sectors(t->lower->bdev)) {
		t->ti->error = "The device is smaller than that";
		return -EINVAL;
	}
	if ((t->ti->begin | t->ti->len) & ((1 << t->block_shift) - 1)) {
		t->ti->error = "Start or length is no multiple of the block size";
		return -EINVAL;
	}
	err = dtc_alloc(t);
	if (!err)
		err = dm_set_target_max_io_len(t->ti, 1 << (DTC_CHUNK_SHIFT + t->block_shift));
	dtc_shutdown_init(t);
	return err ? err : dtc_register(t);
}

static int dtc_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dtc *t;
	int err;

	if (argc < 1) {
		ti->error = "A device is needed";
		return -EINVAL;
	}
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (t)
		t->stats = alloc_percpu(struct dtc_stats);
	if (!t || !t->stats) {
		ti->error = "Not enough memory";
		kfree(t);
		return -ENOMEM;
	}
	t->ti = ti;
	t->suspended = true;
	err = dtc_construct(t, argc, argv);
	if (err) {
		dtc_destroy(t);
		return err;
	}
	ti->private = t;
	ti->per_io_data_size = sizeof(struct dtc_bio);
	ti->num_flush_bios = 1;
	ti->flush_supported = true;	/* the cache needs flushes even if the device doesn't */
	ti->num_discard_bios = 1;
	ti->num_write_zeroes_bios = 1;
	return 0;
}

static void dtc_dtr(struct dm_target *ti)
{
	dtc_retire(ti->private);
}

static int dtc_message(struct dm_target *ti, unsigned int argc, char **argv, char *result,
		       unsigned int maxlen)
{
	struct dtc *t = ti->private;

	if (argc == 1 && !strcmp(argv[0], "flush"))
		return dtc_flush(t);
	if (argc == 2 && !strcmp(argv[0], "latency") && !strcmp(argv[1], "show"))
		return dtc_latency_print(t, result, maxlen);
	if (argc == 2 && !strcmp(argv[0], "latency") && (!strcmp(argv[1], "on") || !strcmp(argv[1], "off"))) {
		WRITE_ONCE(t->latency, !strcmp(argv[1], "on"));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[0], "set"))
		return dtc_params_set(t, argv[1], argv[2]);
	DMERR("%s: no such message: %s", dm_table_device_name(ti->table), argv[0]);
	return -EINVAL;
}

static int dtc_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct dtc *t = ti->private;

	return fn(ti, t->lower, 0, ti->len, data);
}

static void dtc_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct dtc *t = ti->private;
	u32 size = t->params.block_size;

	/* All operations work on whole blocks. flush_supported announces the write cache. */
	limits->logical_block_size = max(limits->logical_block_size, size);
	limits->physical_block_size = max(limits->physical_block_size, size);
	limits->io_min = max(limits->io_min, size);
	limits->discard_granularity = max(limits->discard_granularity, size);
	limits->discard_alignment = round_down(limits->discard_alignment, size);
	/*
	 * A polled bio completes only when its owner polls. During a bypass other tasks would wait for
	 * that.
	 */
	limits->features &= ~BLK_FEAT_POLL;
	/*
	 * A BTT fails segments that aren't whole blocks, on a bypass only and with EIO. The alignment
	 * makes them fail early with EINVAL.
	 */
	if (!queue_is_mq(bdev_get_queue(t->lower->bdev)))
		limits->dma_alignment = max(limits->dma_alignment,
					    bdev_logical_block_size(t->lower->bdev) - 1);
	compat_limit_zeroes(limits, round_down(limits->max_write_zeroes_sectors, size >> SECTOR_SHIFT));
}

static struct target_type dtc_target = {
	.name = "forebay-transit",
	.version = { 1, 0, 0 },
	.module = THIS_MODULE,
	.ctr = dtc_ctr,
	.dtr = dtc_dtr,
	.map = dtc_map,
	.end_io = dtc_end_io,
	.postsuspend = dtc_postsuspend,
	.preresume = dtc_preresume,
	.resume = dtc_resume,
	.status = dtc_status,
	.message = dtc_message,
	.iterate_devices = dtc_iterate_devices,
	.io_hints = dtc_io_hints,
};

static int __init dtc_module_init(void)
{
	int err = dtc_shutdown_register();

	if (err)
		return err;
	err = dm_register_target(&dtc_target);
	if (err)
		dtc_shutdown_unregister();
	return err;
}

static void __exit dtc_module_exit(void)
{
	dm_unregister_target(&dtc_target);
	dtc_shutdown_unregister();
}

module_init(dtc_module_init);
module_exit(dtc_module_exit);

MODULE_DESCRIPTION("Forebay: a transit cache in DRAM for block devices in persistent memory");
MODULE_LICENSE("GPL");

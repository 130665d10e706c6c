/* SPDX-License-Identifier: GPL-2.0-only */
/* The device in each tracepoint of both targets: field, assignment from a struct dm_dev, printing. */
#ifndef FOREBAY_DM_TRACE_DEVICE_H
#define FOREBAY_DM_TRACE_DEVICE_H

#include <linux/kdev_t.h>

#define TRACE_DEVICE_FIELD		__field(dev_t, dev)
#define TRACE_DEVICE_ASSIGN(dm_dev)	(__entry->dev = (dm_dev)->bdev->bd_dev)
#define TRACE_DEVICE_FORMAT		"%d:%d"
#define TRACE_DEVICE_ARGS		MAJOR(__entry->dev), MINOR(__entry->dev)

#endif

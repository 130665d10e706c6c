// SPDX-License-Identifier: GPL-2.0-only
/* /sys/block/forebay-emuN/emu/: a device's properties and delays. */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "emu.h"

static struct emu_device *emu_of_device(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

static ssize_t persistence_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", emu_of_device(dev)->flags & FOREBAY_EMU_CPU_CACHES ? "cpu" : "mem-ctrl");
}
static DEVICE_ATTR_RO(persistence);

static ssize_t tracked_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", emu_tracked(emu_of_device(dev)));
}
static DEVICE_ATTR_RO(tracked);

static ssize_t emu_store_number(const char *buf, size_t len, u64 *number, u64 min, u64 max)
{
	u64 value;
	int err = kstrtou64(buf, 0, &value);

	if (err)
		return err;
	if (value && (value < min || value > max))
		return -ERANGE;
	WRITE_ONCE(*number, value);
	return len;
}

#define EMU_DELAY_ATTRIBUTE(name, field, min, max)							\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)		\
{													\
	return sysfs_emit(buf, "%llu\n", READ_ONCE(emu_of_device(dev)->delay.field));			\
}													\
static ssize_t name##_store(struct device *dev, struct device_attribute *attr, const char *buf,		\
			    size_t len)									\
{													\
	return emu_store_number(buf, len, &emu_of_device(dev)->delay.field, min, max);			\
}													\
static DEVICE_ATTR_RW(name)

EMU_DELAY_ATTRIBUTE(read_delay_ns, read_ns, 1, FOREBAY_EMU_MAX_DELAY);
EMU_DELAY_ATTRIBUTE(write_delay_ns, write_ns, 1, FOREBAY_EMU_MAX_DELAY);
EMU_DELAY_ATTRIBUTE(bandwidth, bandwidth, FOREBAY_EMU_MIN_BANDWIDTH, U64_MAX);

static struct attribute *emu_attributes[] = {
	&dev_attr_persistence.attr,
	&dev_attr_tracked.attr,
	&dev_attr_read_delay_ns.attr,
	&dev_attr_write_delay_ns.attr,
	&dev_attr_bandwidth.attr,
	NULL
};

static const struct attribute_group emu_group = { .name = "emu", .attrs = emu_attributes };

const struct attribute_group *emu_attribute_groups[] = { &emu_group, NULL };

// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/forebay-emu-control, and the list of devices.
 *
 * A device is in the list from its creation until it can't be opened any more. observe.c uses devices
 * without emu_mutex, under RCU; so a device is freed after a grace period.
 */
#include <linux/capability.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/uaccess.h>

#include "emu.h"

LIST_HEAD(emu_devices);
DEFINE_MUTEX(emu_mutex);
DEFINE_RWLOCK(emu_power);

/*
 * Returns the lowest free number. *@before is the link after which the new device belongs in the sorted
 * list.
 */
static u32 emu_free_index(struct list_head **before)
{
	struct emu_device *emu;
	u32 index = 0;

	lockdep_assert_held(&emu_mutex);
	*before = &emu_devices;
	list_for_each_entry(emu, &emu_devices, link) {
		if (emu->index != index)
			break;
		index++;
		*before = &emu->link;
	}
	return index;
}

static int emu_check(const struct forebay_emu_create *want)
{
	if (want->size != sizeof(*want) || want->flags & ~(FOREBAY_EMU_CPU_CACHES | FOREBAY_EMU_TRACK) ||
	    !want->bytes || !PAGE_ALIGNED(want->bytes) || want->bytes > LONG_MAX ||
	    want->read_delay_ns > FOREBAY_EMU_MAX_DELAY || want->write_delay_ns > FOREBAY_EMU_MAX_DELAY ||
	    (want->bandwidth && want->bandwidth < FOREBAY_EMU_MIN_BANDWIDTH) ||
	    want->node < NUMA_NO_NODE || want->node >= MAX_NUMNODES ||
	    (want->node >= 0 && !node_online(want->node)))
		return -EINVAL;
	return 0;
}

static int emu_create(struct forebay_emu_create __user *user)
{
	struct forebay_emu_create want;
	struct list_head *before;
	struct emu_device *emu;
	int err;

	if (copy_from_user(&want, user, sizeof(want)))
		return -EFAULT;
	err = emu_check(&want);
	if (err)
		return err;
	mutex_lock(&emu_mutex);
	want.index = emu_free_index(&before);
	emu = emu_device_create(&want, want.index);
	err = PTR_ERR_OR_ZERO(emu);
	if (!err) {
		list_add_rcu(&emu->link, before);
		pr_warn("forebay-emu%u: %llu bytes of ordinary memory, whose contents go with the power\n",
			emu->index, emu->size);
	}
	mutex_unlock(&emu_mutex);
	if (!err && put_user(want.index, &user->index))
		err = -EFAULT;
	return err;
}

/**
 * emu_find() - find a device by number
 * @index: its number
 *
 * Context: Under emu_mutex.
 * Return: the device, or NULL.
 */
struct emu_device *emu_find(u32 index)
{
	struct emu_device *emu;

	lockdep_assert_held(&emu_mutex);
	list_for_each_entry(emu, &emu_devices, link)
		if (emu->index == index)
			return emu;
	return NULL;
}

static int emu_remove(u32 index)
{
	struct emu_device *emu;
	int err;

	mutex_lock(&emu_mutex);
	emu = emu_find(index);
	err = emu ? emu_device_close(emu) : -ENODEV;
	if (!err) {
		list_del_rcu(&emu->link);
		synchronize_rcu();
		emu_device_free(emu);
	}
	mutex_unlock(&emu_mutex);
	return err;
}

static int emu_cut_user(const struct forebay_emu_cut __user *user)
{
	struct forebay_emu_cut cut;
	int err;

	if (copy_from_user(&cut, user, sizeof(cut)))
		return -EFAULT;
	if (cut.size != sizeof(cut) || !cut.nr || cut.nr > FOREBAY_EMU_CUTS)
		return -EINVAL;
	mutex_lock(&emu_mutex);
	err = emu_cut(&cut);
	mutex_unlock(&emu_mutex);
	return err;
}

static long emu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	switch (cmd) {
	case FOREBAY_EMU_CREATE:
		return emu_create((void __user *)arg);
	case FOREBAY_EMU_REMOVE:
		return arg > U32_MAX ? -ENODEV : emu_remove(arg);
	case FOREBAY_EMU_CUT:
		return emu_cut_user((void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations emu_control_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= emu_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice emu_control = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "forebay-emu-control",
	.mode	= 0600,
	.fops	= &emu_control_fops,
};

static int __init emu_init(void)
{
	int err = emu_observe_init();

	if (err)
		return err;
	err = misc_register(&emu_control);
	if (err)
		emu_observe_exit();
	return err;
}

/* Open disks and the control device hold references to the module, so none of them is left. */
static void __exit emu_exit(void)
{
	struct emu_device *emu, *next;

	misc_deregister(&emu_control);
	emu_observe_exit();
	list_for_each_entry_safe(emu, next, &emu_devices, link)
		emu_device_free(emu);
}

module_init(emu_init);
module_exit(emu_exit);
MODULE_DESCRIPTION("Forebay: persistent memory made of ordinary memory, for trying things out");
MODULE_LICENSE("GPL");

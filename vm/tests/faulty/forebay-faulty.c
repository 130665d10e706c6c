// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that makes the fault asked for, to test that the debug kernel and vm/run report it:
 *
 *   modprobe forebay-faulty do=leak|overrun|lock-order|sleep-atomic|shift|objects
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *what = "";
module_param_named(do, what, charp, 0);

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spin);
static struct kmem_cache *cache;
static int shift = 40;

/* kmemleak does not look at freed stack memory, but a register may still hold the pointer: use it up. */
static noinline void leak(void)
{
	for (int i = 0; i < 16; i++)
		memset(kmalloc(64, GFP_KERNEL), i, 64);
}

static noinline void overrun(void)
{
	char *bytes = kmalloc(24, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(bytes);
	bytes[24] = 1;
	kfree(bytes);
}

static noinline void lock_order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static noinline void sleep_atomic(void)
{
	spin_lock(&spin);
	msleep(1);
	spin_unlock(&spin);
}

static noinline void undefined_shift(void)
{
	OPTIMIZER_HIDE_VAR(shift);
	pr_info("%d\n", 1 << shift);
}

static noinline void keep_objects(void)
{
	cache = kmem_cache_create("forebay_faulty", 64, 0, 0, NULL);
	if (kmem_cache_alloc(cache, GFP_KERNEL))
		kmem_cache_destroy(cache);
}

static int __init faulty_init(void)
{
	if (!strcmp(what, "leak"))
		leak();
	else if (!strcmp(what, "overrun"))
		overrun();
	else if (!strcmp(what, "lock-order"))
		lock_order();
	else if (!strcmp(what, "sleep-atomic"))
		sleep_atomic();
	else if (!strcmp(what, "shift"))
		undefined_shift();
	else if (!strcmp(what, "objects"))
		keep_objects();
	return 0;
}

static void __exit faulty_exit(void)
{
}

module_init(faulty_init);
module_exit(faulty_exit);
MODULE_DESCRIPTION("Faults for a debug kernel to find");
MODULE_LICENSE("GPL");

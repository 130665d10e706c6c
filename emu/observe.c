// SPDX-License-Identifier: GPL-2.0-only
/*
 * Observes how Forebay's modules use persistent memory. Each module has the tracepoints of
 * core/pm/trace.h. They get probes when the module is loaded, or when this module is.
 *
 * The probes run in the context of the module's store, with preemption off.
 */
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include "emu.h"

/* Returns the device that an address belongs to. Context: Under rcu_read_lock(). */
static struct emu_device *emu_of(const void *address)
{
	struct emu_device *emu;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "emu_of() without rcu_read_lock()");
	list_for_each_entry_rcu(emu, &emu_devices, link)
		if ((const u8 *)address >= emu->memory && (const u8 *)address < emu->memory + emu->size)
			return emu;
	return NULL;
}

static void emu_probe_store(void *data, void *to)
{
	struct emu_device *emu;

	rcu_read_lock();
	emu = emu_of(to);
	if (emu && emu_tracked(emu))
		emu_shadow_stored(emu, (u8 *)to - emu->memory);
	rcu_read_unlock();
}

static void emu_probe_write(void *data, void *to, size_t len)
{
	struct emu_device *emu;

	rcu_read_lock();
	emu = emu_of(to);
	if (emu) {
		emu_delay_write(emu, len);
		if (emu_tracked(emu))
			emu_shadow_sent(emu, (u8 *)to - emu->memory, len, current);
	}
	rcu_read_unlock();
}

static void emu_probe_read(void *data, const void *from, size_t len)
{
	struct emu_device *emu;

	rcu_read_lock();
	emu = emu_of(from);
	if (emu)
		emu_delay_read(emu, len);
	rcu_read_unlock();
}

static void emu_probe_fence(void *data, struct task_struct *task)
{
	struct emu_device *emu;

	rcu_read_lock();
	list_for_each_entry_rcu(emu, &emu_devices, link)
		if (emu_tracked(emu))
			emu_shadow_fence(emu, task);
	rcu_read_unlock();
}

static const struct {
	const char *name;
	void *probe;
} emu_probes[] = {
	{ "forebay_pm_store", emu_probe_store },
	{ "forebay_pm_write", emu_probe_write },
	{ "forebay_pm_read", emu_probe_read },
	{ "forebay_pm_fence", emu_probe_fence },
};

static void emu_attach(struct tracepoint *tp, bool on)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(emu_probes); i++) {
		if (strcmp(tp->name, emu_probes[i].name))
			continue;
		if (!on)
			tracepoint_probe_unregister(tp, emu_probes[i].probe, NULL);
		else if (tracepoint_probe_register(tp, emu_probes[i].probe, NULL))
			pr_warn("can't hear of %s: no delays there, and no tracking\n", tp->name);
	}
}

/*
 * Called when a module is loaded or removed. At our own load it is called for all present modules, and
 * likewise at our removal.
 */
static int emu_module_notify(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *mod = ((struct tp_module *)data)->mod;
	unsigned int i;

	if (state == MODULE_STATE_COMING || state == MODULE_STATE_GOING)
		for (i = 0; i < mod->num_tracepoints; i++)
			emu_attach(tracepoint_ptr_deref(&mod->tracepoints_ptrs[i]),
				   state == MODULE_STATE_COMING);
	return NOTIFY_OK;
}

static struct notifier_block emu_module_block = { .notifier_call = emu_module_notify };

/**
 * emu_observe_init() - attach the probes
 *
 * Context: Task. Sleeps.
 * Return: 0 or a negative errno.
 */
int emu_observe_init(void)
{
	return register_tracepoint_module_notifier(&emu_module_block);
}

/**
 * emu_observe_exit() - detach the probes; none of them runs on return
 *
 * Context: Task. Sleeps.
 */
void emu_observe_exit(void)
{
	unregister_tracepoint_module_notifier(&emu_module_block);
	tracepoint_synchronize_unregister();
}

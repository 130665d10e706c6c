// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies what a power cut at this moment would leave of some devices to others. The users of the first
 * devices continue, and the copies can be mounted beside them. So a cut takes milliseconds, and one
 * boot has thousands of cuts.
 *
 * All that was fenced survives. Each 8 bytes that were stored and not fenced may survive or not, as may
 * each block that was written and not flushed. A cut chooses for all: none, all, or each at random.
 */
#include <linux/bitmap.h>
#include <linux/prandom.h>

#include "emu.h"

enum emu_survive { EMU_NONE, EMU_ALL, EMU_SOME, EMU_KINDS };

/* True if the page must be computed again. Also marks whether it must be at the next cut. */
static bool emu_page_stale(struct emu_device *from, struct emu_device *to, unsigned long page, bool known)
{
	bool changed = test_and_clear_bit(page, from->shadow.changed);

	changed |= test_and_clear_bit(page, to->shadow.changed);
	if (memcmp(from->memory + PFN_PHYS(page), from->shadow.durable + PFN_PHYS(page), PAGE_SIZE)) {
		set_bit(page, from->shadow.changed);
		/* Durable stores need no flush here, so stores of user mappings aren't observed. */
		changed |= from->flags & FOREBAY_EMU_CPU_CACHES;
	}
	return changed || !known;
}

static void emu_cut_page(struct emu_device *from, struct emu_device *to, unsigned long page,
			 enum emu_survive kind, struct rnd_state *chance)
{
	const u64 *memory = (u64 *)(from->memory + PFN_PHYS(page));
	const u64 *durable = (u64 *)(from->shadow.durable + PFN_PHYS(page));
	u64 *surviving = (u64 *)(to->memory + PFN_PHYS(page));
	unsigned int step = test_bit(page, from->shadow.by_block) ? PAGE_SIZE / sizeof(u64) : 1;
	bool survives = false;
	unsigned int i;

	for (i = 0; i < PAGE_SIZE / sizeof(u64); i++) {
		if (i % step == 0)
			survives = kind == EMU_ALL || (from->flags & FOREBAY_EMU_CPU_CACHES) ||
				   (kind == EMU_SOME && (prandom_u32_state(chance) & 1));
		surviving[i] = survives ? READ_ONCE(memory[i]) : durable[i];
	}
	memcpy(to->shadow.durable + PFN_PHYS(page), surviving, PAGE_SIZE);
}

/* Context: emu_power is held exclusively, so nothing becomes durable meanwhile. */
static void emu_cut_pair(struct emu_device *from, struct emu_device *to, enum emu_survive kind,
			 struct rnd_state *chance)
{
	bool known = from->shadow.partner == to->index && to->shadow.partner == from->index;
	unsigned long page;

	lockdep_assert_held_write(&emu_power);
	emu_shadow_drop_pending(to);
	for (page = 0; page < from->size >> PAGE_SHIFT; page++)
		if (emu_page_stale(from, to, page, known))
			emu_cut_page(from, to, page, kind, chance);
	from->shadow.partner = to->index;
	to->shadow.partner = from->index;
}

static int emu_check_pair(const struct emu_device *from, const struct emu_device *to)
{
	if (!from || !to)
		return -ENODEV;
	if (from == to || !emu_tracked(from) || !emu_tracked(to) || from->size != to->size)
		return -EINVAL;
	return 0;
}

/**
 * emu_cut() - cut the power of devices
 * @cut: the devices, and where the surviving bytes are copied to
 *
 * Context: Under emu_mutex. Sleeps.
 * Return: 0; -ENODEV: there is no such device; -EINVAL: the devices of a pair don't match; -EBUSY: a
 * device to be filled is in use.
 */
int emu_cut(const struct forebay_emu_cut *cut)
{
	struct emu_device *from[FOREBAY_EMU_CUTS], *to[FOREBAY_EMU_CUTS];
	struct rnd_state chance;
	enum emu_survive kind;
	u32 i, closed = 0;
	int err = 0;

	lockdep_assert_held(&emu_mutex);
	prandom_seed_state(&chance, cut->seed);
	kind = prandom_u32_state(&chance) % EMU_KINDS;
	for (i = 0; i < cut->nr && !err; i++) {
		from[i] = emu_find(cut->pairs[i].from);
		to[i] = emu_find(cut->pairs[i].to);
		err = emu_check_pair(from[i], to[i]) ?: emu_device_close(to[i]);
		closed += !err;
	}
	if (!err) {
		write_lock(&emu_power);
		for (i = 0; i < cut->nr; i++)
			emu_cut_pair(from[i], to[i], kind, &chance);
		write_unlock(&emu_power);
	}
	for (i = 0; i < closed; i++)
		emu_device_reopen(to[i]);
	return err;
}

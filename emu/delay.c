// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slowness. A copy takes its delay, and its share of the bandwidth, which all copies of a device draw from
 * one after the other. Who waits spins, as a processor that waits for memory does.
 */
#include <linux/ktime.h>
#include <linux/processor.h>

#include "emu.h"

/* When a copy of @len bytes that comes now has had its share. */
static u64 emu_share(struct emu_delay *delay, u64 now, size_t len)
{
	u64 bandwidth = READ_ONCE(delay->bandwidth), until;
	s64 busy = atomic64_read(&delay->busy_until);

	if (!bandwidth)
		return now;
	do {
		until = max_t(u64, busy, now) + div64_u64(len * NSEC_PER_SEC, bandwidth);
	} while (!atomic64_try_cmpxchg(&delay->busy_until, &busy, until));
	return until;
}

static void emu_delay_copy(struct emu_delay *delay, u64 ns, size_t len)
{
	u64 now, until;

	if (!ns && !READ_ONCE(delay->bandwidth))
		return;
	now = ktime_get_ns();
	until = emu_share(delay, now, len) + ns;
	while (ktime_get_ns() < until)
		cpu_relax();
}

/**
 * emu_delay_read() - spin for as long as a read takes longer than memory does
 * @emu: the device
 * @len: bytes
 *
 * Context: any.
 */
void emu_delay_read(struct emu_device *emu, size_t len)
{
	emu_delay_copy(&emu->delay, READ_ONCE(emu->delay.read_ns), len);
}

/**
 * emu_delay_write() - the same for a write
 * @emu: the device
 * @len: bytes
 */
void emu_delay_write(struct emu_device *emu, size_t len)
{
	emu_delay_copy(&emu->delay, READ_ONCE(emu->delay.write_ns), len);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delays. A copy takes its delay, and its share of the bandwidth. The copies of a device draw their
 * shares one after the other. A waiting task spins, as a CPU that waits for memory does.
 */
#include <linux/ktime.h>
#include <linux/processor.h>

#include "emu.h"

/* Returns when a copy of @len bytes that starts now has had its share of the bandwidth, in ns. */
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
 * emu_delay_read() - spin for the time that a read takes longer than from memory
 * @emu: the device
 * @len: bytes
 *
 * Context: Any.
 */
void emu_delay_read(struct emu_device *emu, size_t len)
{
	emu_delay_copy(&emu->delay, READ_ONCE(emu->delay.read_ns), len);
}

/**
 * emu_delay_write() - spin for the time that a write takes longer than to memory
 * @emu: the device
 * @len: bytes
 *
 * Context: Any.
 */
void emu_delay_write(struct emu_device *emu, size_t len)
{
	emu_delay_copy(&emu->delay, READ_ONCE(emu->delay.write_ns), len);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long sync calls take, by what they wait for (enum fb_sync_kind). It is always on: it costs a call one
 * more reading of the clock, and two additions to memory of this CPU. vfs/sysfs.c shows it. The trace event
 * fb_sync names each call's process and file; while it is off, it costs a no-op.
 *
 * A call that fails isn't counted. Nor are syncfs(2) and sync(2), which are about many files.
 */
#include "../trace.h"
#include "latency.h"

/**
 * fb_latencies_init() - none so far
 * @fsb: the mount
 *
 * Return: 0 or -ENOMEM.
 */
int fb_latencies_init(struct fb_sb *fsb)
{
	fsb->sync_latencies = __alloc_percpu(array_size(FB_NR_SYNC_KINDS, sizeof(struct latency)),
					     __alignof__(struct latency));
	return fsb->sync_latencies ? 0 : -ENOMEM;
}

void fb_latencies_free(struct fb_sb *fsb)
{
	free_percpu(fsb->sync_latencies);
}

/**
 * fb_latency_add() - a sync call has ended well
 * @inode: the file or directory
 * @kind: what the call waited for
 * @start_ns: when it began, by ktime_get_ns()
 */
void fb_latency_add(struct inode *inode, enum fb_sync_kind kind, u64 start_ns)
{
	u64 ns = ktime_get_ns() - start_ns;

	latency_add(&FB_SB(inode->i_sb)->sync_latencies[kind], ns);
	trace_fb_sync(inode, kind, ns);
}

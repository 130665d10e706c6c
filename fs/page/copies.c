// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies that the kernel makes between memory and PMem: how many bytes.
 *
 * Each copy to or from pages of files is counted here when it is made, whatever file system call or worker
 * it is for. The counters are per CPU. Two readers of them don't agree while copies are made.
 *
 * Stores and loads of programs in mappings pass the kernel by. FB_MAPPED_STORES estimates the stores: each
 * page that becomes writable in a mapping, and each that a sync call flushes and leaves mapped.
 */
#include "../trace.h"
#include "copies.h"

/**
 * fb_copied() - bytes were copied between memory and PMem, or may have been stored there through a mapping
 * @fsb: the mount
 * @which: the counter of such bytes
 * @bytes: how many
 *
 * Any context. Doesn't sleep.
 */
void fb_copied(struct fb_sb *fsb, enum fb_counter which, size_t bytes)
{
	percpu_counter_add_local(&fsb->counters[which], bytes);
	trace_fb_copy(fsb, which, bytes);
}

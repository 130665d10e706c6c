/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of the main steps: /sys/kernel/tracing/events/forebay/ */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM forebay

#if !defined(FOREBAY_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FOREBAY_TRACE_H

#include <linux/tracepoint.h>

#include "forebay.h"

TRACE_EVENT(fb_absorb,
	TP_PROTO(struct fb_inode *fi, unsigned int pages, int err),
	TP_ARGS(fi, pages, err),
	TP_STRUCT__entry(
		__field(unsigned long, ino)
		__field(unsigned int, pages)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ino = fi->vfs_inode.i_ino;
		__entry->pages = pages;
		__entry->err = err;
	),
	TP_printk("ino=%lu pages=%u err=%d", __entry->ino, __entry->pages, __entry->err)
);

TRACE_EVENT(fb_sync_below,
	TP_PROTO(struct fb_inode *fi),
	TP_ARGS(fi),
	TP_STRUCT__entry(
		__field(unsigned long, ino)
		__field(unsigned long, flags)
	),
	TP_fast_assign(
		__entry->ino = fi->vfs_inode.i_ino;
		__entry->flags = fi->flags;
	),
	TP_printk("ino=%lu flags=%#lx", __entry->ino, __entry->flags)
);

DECLARE_EVENT_CLASS(fb_pages,
	TP_PROTO(struct fb_inode *fi, pgoff_t index, unsigned int pages),
	TP_ARGS(fi, index, pages),
	TP_STRUCT__entry(
		__field(unsigned long, ino)
		__field(unsigned long, index)
		__field(unsigned int, pages)
	),
	TP_fast_assign(
		__entry->ino = fi->vfs_inode.i_ino;
		__entry->index = index;
		__entry->pages = pages;
	),
	TP_printk("ino=%lu index=%lu pages=%u", __entry->ino, __entry->index, __entry->pages)
);

/* In fb_pages_commit_and_insert(). The event keeps its name, for programs that ask for it. */
DEFINE_EVENT(fb_pages, fb_publish,
	TP_PROTO(struct fb_inode *fi, pgoff_t index, unsigned int pages),
	TP_ARGS(fi, index, pages));
DEFINE_EVENT(fb_pages, fb_writeback,
	TP_PROTO(struct fb_inode *fi, pgoff_t index, unsigned int pages),
	TP_ARGS(fi, index, pages));

DECLARE_EVENT_CLASS(fb_file,
	TP_PROTO(struct fb_inode *fi, unsigned long pages),
	TP_ARGS(fi, pages),
	TP_STRUCT__entry(
		__field(unsigned long, ino)
		__field(unsigned long, pages)
	),
	TP_fast_assign(
		__entry->ino = fi->vfs_inode.i_ino;
		__entry->pages = pages;
	),
	TP_printk("ino=%lu pages=%lu", __entry->ino, __entry->pages)
);

DEFINE_EVENT(fb_file, fb_reclaim,
	TP_PROTO(struct fb_inode *fi, unsigned long pages),
	TP_ARGS(fi, pages));
DEFINE_EVENT(fb_file, fb_recover,
	TP_PROTO(struct fb_inode *fi, unsigned long pages),
	TP_ARGS(fi, pages));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

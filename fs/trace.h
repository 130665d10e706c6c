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

TRACE_DEFINE_ENUM(FB_COPIED_IN);
TRACE_DEFINE_ENUM(FB_COPIED_OUT);
TRACE_DEFINE_ENUM(FB_COPIED_BACK);
TRACE_DEFINE_ENUM(FB_MAPPED_STORES);

/* Bytes that the kernel has copied to or from PMem, or that programs may have stored there; docs/sysfs.md. */
TRACE_EVENT(fb_copy,
	TP_PROTO(struct fb_sb *fsb, enum fb_counter which, size_t bytes),
	TP_ARGS(fsb, which, bytes),
	TP_STRUCT__entry(
		__field(size_t, bytes)
		__field(dev_t, dev)
		__field(pid_t, pid)
		__field(uid_t, uid)
		__field(unsigned int, which)
		__array(char, comm, TASK_COMM_LEN)
	),
	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->dev = fsb->sb->s_dev;
		__entry->pid = current->tgid;
		__entry->uid = from_kuid(&init_user_ns, current_uid());
		__entry->which = which;
		memcpy(__entry->comm, current->group_leader->comm, TASK_COMM_LEN);
	),
	TP_printk("dev=%u:%u pid=%d comm=%s uid=%u kind=%s bytes=%zu", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->pid, __entry->comm, __entry->uid,
		  __print_symbolic(__entry->which, { FB_COPIED_IN, "in" }, { FB_COPIED_OUT, "out" },
				   { FB_COPIED_BACK, "back" }, { FB_MAPPED_STORES, "mapped" }),
		  __entry->bytes)
);

TRACE_DEFINE_ENUM(FB_SYNC_MEMORY);
TRACE_DEFINE_ENUM(FB_SYNC_MOVE);
TRACE_DEFINE_ENUM(FB_SYNC_STORAGE);

/*
 * A sync call of a file or directory has ended well. The event names the process, because the record's own
 * pid is a thread's. A process may have ended when the record is read. `forebay top` reads dev, ino, pid,
 * kind, ns and comm.
 */
TRACE_EVENT(fb_sync,
	TP_PROTO(struct inode *inode, enum fb_sync_kind kind, u64 ns),
	TP_ARGS(inode, kind, ns),
	TP_STRUCT__entry(
		__field(u64, ns)
		__field(unsigned long, ino)
		__field(dev_t, dev)
		__field(pid_t, pid)
		__field(unsigned int, kind)
		__array(char, comm, TASK_COMM_LEN)
	),
	TP_fast_assign(
		__entry->ns = ns;
		__entry->ino = inode->i_ino;
		__entry->dev = inode->i_sb->s_dev;
		__entry->pid = current->tgid;
		__entry->kind = kind;
		memcpy(__entry->comm, current->group_leader->comm, TASK_COMM_LEN);
	),
	TP_printk("dev=%u:%u ino=%lu pid=%d comm=%s kind=%s ns=%llu", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->ino, __entry->pid, __entry->comm,
		  __print_symbolic(__entry->kind, { FB_SYNC_MEMORY, "memory" }, { FB_SYNC_MOVE, "move" },
				   { FB_SYNC_STORAGE, "storage" }), __entry->ns)
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

/* SPDX-License-Identifier: GPL-2.0-only */
/* Backing files. Since Linux 6.13 their functions and callbacks are told the user's kiocb, not the file. */
#ifndef FOREBAY_COMPAT_BACKING_H
#define FOREBAY_COMPAT_BACKING_H

#include <linux/backing-file.h>

#include "compat.h"

#ifdef COMPAT_HAS_BACKING_KIOCB
/* A line of an initializer of struct backing_file_ctx. */
#define COMPAT_USER_FILE(file)

/* @name: void name(struct file *user_file, loff_t end, ssize_t written) */
#define COMPAT_DEFINE_END_WRITE(name)						\
static void name ## _adapted(struct kiocb *iocb, ssize_t ret)			\
{										\
	name(iocb->ki_filp, iocb->ki_pos, ret);					\
}

#define COMPAT_END_WRITE(name)	name ## _adapted

static inline void compat_end_write(struct backing_file_ctx *ctx, struct kiocb *user, loff_t end,
				    ssize_t ret)
{
	user->ki_pos = end;
	ctx->end_write(user, ret);
}

static inline ssize_t compat_splice_read(struct file *file, struct file *user_file, loff_t *pos,
					 struct pipe_inode_info *pipe, size_t len, unsigned int flags,
					 struct backing_file_ctx *ctx)
{
	struct kiocb iocb;
	ssize_t ret;

	init_sync_kiocb(&iocb, user_file);
	iocb.ki_pos = *pos;
	ret = backing_file_splice_read(file, &iocb, pipe, len, flags, ctx);
	*pos = iocb.ki_pos;
	return ret;
}
#else
#define COMPAT_USER_FILE(file)	.user_file = (file),

#define COMPAT_DEFINE_END_WRITE(name)
#define COMPAT_END_WRITE(name)	name

static inline void compat_end_write(struct backing_file_ctx *ctx, struct kiocb *user, loff_t end,
				    ssize_t ret)
{
	ctx->end_write(ctx->user_file, end, ret);
}

static inline ssize_t compat_splice_read(struct file *file, struct file *user_file, loff_t *pos,
					 struct pipe_inode_info *pipe, size_t len, unsigned int flags,
					 struct backing_file_ctx *ctx)
{
	return backing_file_splice_read(file, pos, pipe, len, flags, ctx);
}
#endif

#endif

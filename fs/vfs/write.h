/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes to regular files: write.c */
#ifndef FOREBAY_VFS_WRITE_H
#define FOREBAY_VFS_WRITE_H

#include "../forebay.h"

ssize_t fb_write_iter(struct kiocb *iocb, struct iov_iter *from);
ssize_t fb_splice_write(struct pipe_inode_info *pipe, struct file *out, loff_t *pos, size_t len,
			unsigned int flags);

#endif

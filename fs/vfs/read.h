/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads of regular files: read.c */
#ifndef FOREBAY_VFS_READ_H
#define FOREBAY_VFS_READ_H

#include "../forebay.h"

ssize_t fb_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t fb_splice_read(struct file *in, loff_t *pos, struct pipe_inode_info *pipe, size_t len,
		       unsigned int flags);

#endif

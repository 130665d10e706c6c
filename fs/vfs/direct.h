/* SPDX-License-Identifier: GPL-2.0-only */
/* Direct I/O of lower pages: direct.c */
#ifndef FOREBAY_VFS_DIRECT_H
#define FOREBAY_VFS_DIRECT_H

#include "../forebay.h"

/* A direct read or write is passed below in pieces of at most so many bytes. */
#define FB_DIRECT_MAX	((size_t)SZ_4M)

size_t fb_direct_fault_in(const struct iov_iter *iter, size_t len);
ssize_t fb_direct_io(struct file *lower, struct kiocb *iocb, struct iov_iter *iter, size_t len, int flags,
		     struct backing_file_ctx *ctx);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FOREBAY_DIRECT_H
#define FOREBAY_DIRECT_H

#include "forebay.h"

/* A direct read or write is passed below in pieces of at most so many bytes. */
#define FB_DIRECT_MAX	((size_t)SZ_4M)

ssize_t fb_direct_read(struct file *lower, struct kiocb *iocb, struct iov_iter *to, size_t len,
		       struct backing_file_ctx *ctx);
ssize_t fb_direct_write(struct file *lower, struct kiocb *iocb, struct iov_iter *from, size_t len, int flags,
			struct backing_file_ctx *ctx);
size_t fb_direct_fault_in(const struct iov_iter *iter, size_t len);

#endif

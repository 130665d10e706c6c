/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes to regular files: write.c */
#ifndef FOREBAY_VFS_WRITE_H
#define FOREBAY_VFS_WRITE_H

#include "../forebay.h"

ssize_t fb_write_iter(struct kiocb *iocb, struct iov_iter *from);

#endif

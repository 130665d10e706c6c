/* SPDX-License-Identifier: GPL-2.0-only */
/* Whole pages that go to PMem at once: overwrite.c */
#ifndef FOREBAY_SYNC_OVERWRITE_H
#define FOREBAY_SYNC_OVERWRITE_H

#include <linux/uio.h>

#include "../forebay.h"

void fb_overwrite_synced(struct fb_inode *fi);
bool fb_overwrite_wanted(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from);
ssize_t fb_overwrite(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from);

#endif

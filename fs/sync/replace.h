/* SPDX-License-Identifier: GPL-2.0-only */
/* A file is about to take the place of another one: replace.c */
#ifndef FOREBAY_SYNC_REPLACE_H
#define FOREBAY_SYNC_REPLACE_H

#include "../forebay.h"

bool fb_may_replace(struct fb_inode *fi, struct mnt_idmap *idmap);

#endif

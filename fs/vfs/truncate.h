/* SPDX-License-Identifier: GPL-2.0-only */
/* Truncation: truncate.c */
#ifndef FOREBAY_VFS_TRUNCATE_H
#define FOREBAY_VFS_TRUNCATE_H

#include "../forebay.h"

int fb_setattr_size(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);

#endif

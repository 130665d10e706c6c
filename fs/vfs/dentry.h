/* SPDX-License-Identifier: GPL-2.0-only */
/* Upper and lower dentries: dentry.c */
#ifndef FOREBAY_VFS_DENTRY_H
#define FOREBAY_VFS_DENTRY_H

#include "../forebay.h"

void fb_set_lower(struct dentry *dentry, struct dentry *lower);
extern const struct dentry_operations fb_dentry_operations;

#endif

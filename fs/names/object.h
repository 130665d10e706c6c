/* SPDX-License-Identifier: GPL-2.0-only */
/* What a record says of one lower object: object.c */
#ifndef FOREBAY_NAMES_OBJECT_H
#define FOREBAY_NAMES_OBJECT_H

#include "names.h"

bool fb_identify(struct fb_sb *fsb, struct inode *lower, struct dentry *lower_dentry,
		 struct nl_identity *id);
void fb_describe(struct nl_attr *attr, const struct inode *lower, s64 mtime);
bool fb_has_more(struct dentry *lower);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes changed below: attr.c */
#ifndef FOREBAY_NAMES_ATTR_H
#define FOREBAY_NAMES_ATTR_H

#include "names.h"

int fb_names_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Extended attributes: xattr.c */
#ifndef FOREBAY_VFS_XATTR_H
#define FOREBAY_VFS_XATTR_H

#include <linux/xattr.h>

#include "../forebay.h"

ssize_t fb_listxattr(struct dentry *dentry, char *list, size_t size);
extern const struct xattr_handler * const fb_xattr_handlers[];

#endif

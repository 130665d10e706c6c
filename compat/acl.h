/* SPDX-License-Identifier: GPL-2.0-only */
/* ACLs as extended attributes. */
#ifndef FOREBAY_COMPAT_ACL_H
#define FOREBAY_COMPAT_ACL_H

#include <linux/fs.h>
#include <linux/posix_acl_xattr.h>
#include <linux/slab.h>

#include "compat.h"

/*
 * An ACL as an extended attribute has it, with ids of the initial namespace. Returns memory of *@size
 * bytes for kfree(); NULL: there is none. Newer kernels allocate it themselves.
 */
static inline void *compat_acl_to_xattr(const struct posix_acl *acl, size_t *size, gfp_t gfp)
{
#ifdef COMPAT_HAS_ACL_XATTR_ALLOC
	return posix_acl_to_xattr(&init_user_ns, acl, size, gfp);
#else
	int bytes = posix_acl_to_xattr(&init_user_ns, acl, NULL, 0);
	void *value = kmalloc(bytes, gfp);

	if (value)
		*size = posix_acl_to_xattr(&init_user_ns, acl, value, bytes);
	return value;
#endif
}

#endif

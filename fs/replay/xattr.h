/* SPDX-License-Identifier: GPL-2.0-only */
/* Extended attributes that replay sets: xattr.c */
#ifndef FOREBAY_REPLAY_XATTR_H
#define FOREBAY_REPLAY_XATTR_H

#include "run.h"

bool fb_is_access_acl(const struct nl_text *name);
int fb_replay_access_acl(struct fb_replay *run, struct dentry *object, u64 place, const u32 *mode);
int fb_replay_xattr(struct fb_replay *run, const struct nl_node *node, const struct nl_change *change);

#endif

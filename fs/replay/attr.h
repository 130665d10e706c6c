/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes that replay sets: attr.c */
#ifndef FOREBAY_REPLAY_ATTR_H
#define FOREBAY_REPLAY_ATTR_H

#include "run.h"

int fb_replay_read_attributes(struct fb_replay *run);
int fb_replay_home_attributes(struct fb_replay *run, const struct nl_node *node, struct dentry *object);
int fb_replay_home_xattrs(struct fb_replay *run);
int fb_replay_attributes(struct fb_replay *run);

#endif

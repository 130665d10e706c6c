/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects that are made again, in staging: make.c */
#ifndef FOREBAY_REPLAY_MAKE_H
#define FOREBAY_REPLAY_MAKE_H

#include "run.h"

struct dentry *fb_make_again(struct fb_replay *run, const struct nl_record *record,
			     const struct nl_node *node);
struct dentry *fb_find_staged(struct fb_replay *run, const struct nl_node *node);
struct dentry *fb_find_object(struct fb_replay *run, const struct nl_node *node);
struct dentry *fb_find_dir(struct fb_replay *run, const struct nl_node *node);
void fb_forget_dirs(struct fb_replay *run);

#endif

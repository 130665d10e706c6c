/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects that are made again, in staging: make.c */
#ifndef FOREBAY_REPLAY_MAKE_H
#define FOREBAY_REPLAY_MAKE_H

#include "run.h"

/* Whether a file is made in a directory that is made again, too. @dir: where it gets its only name. */
static inline bool fb_is_made_in(const struct fb_replay *run, const struct nl_node *dir,
				 const struct nl_node *file)
{
	return file->names == 1 && nl_node_made(&run->bind, dir) && dir->is_dir && dir->born < file->born;
}

struct dentry *fb_make_again(struct fb_replay *run, const struct nl_record *record,
			     const struct nl_node *node);
struct dentry *fb_find_staged(struct fb_replay *run, const struct nl_node *node);
struct dentry *fb_find_object(struct fb_replay *run, const struct nl_node *node);
struct dentry *fb_find_dir(struct fb_replay *run, const struct nl_node *node);
void fb_forget_dirs(struct fb_replay *run);

#endif

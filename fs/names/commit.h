/* SPDX-License-Identifier: GPL-2.0-only */
/* What sync calls have of the name log: commit.c */
#ifndef FOREBAY_NAMES_COMMIT_H
#define FOREBAY_NAMES_COMMIT_H

#include "names.h"

int fb_names_commit_all(struct fb_sb *fsb);
int fb_names_commit_file(struct fb_inode *fi);
bool fb_names_have_times(const struct fb_inode *fi);
void fb_names_keep_birth(struct fb_inode *fi);

#endif

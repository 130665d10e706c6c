/* SPDX-License-Identifier: GPL-2.0-only */
/* Recovery of the name log at mount: replay.c */
#ifndef FOREBAY_REPLAY_REPLAY_H
#define FOREBAY_REPLAY_REPLAY_H

#include <linux/fs_context.h>

#include "../forebay.h"

bool fb_replay_has_records(struct fb_sb *fsb);
int fb_replay(struct fb_sb *fsb, struct fs_context *fc);

#endif

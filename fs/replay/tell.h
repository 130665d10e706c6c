/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages of replay: tell.c */
#ifndef FOREBAY_REPLAY_TELL_H
#define FOREBAY_REPLAY_TELL_H

#include "run.h"

int fb_replay_failed(struct fb_replay *run, const char *what, const struct nl_text *name, int err);
int fb_replay_failed_attr(struct fb_replay *run, const struct nl_node *node, u32 uid, int err);
void fb_tell_progress(struct fb_replay *run);

#endif

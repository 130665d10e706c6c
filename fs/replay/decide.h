/* SPDX-License-Identifier: GPL-2.0-only */
/* Which records storage has: decide.c */
#ifndef FOREBAY_REPLAY_DECIDE_H
#define FOREBAY_REPLAY_DECIDE_H

#include "run.h"

int fb_log_damaged(struct fb_replay *run, const struct nl_damage *damage);
int fb_log_damaged_somewhere(struct fb_replay *run);
int fb_decide(struct fb_replay *run);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* A name log that is given up: discard.c */
#ifndef FOREBAY_REPLAY_DISCARD_H
#define FOREBAY_REPLAY_DISCARD_H

#include "run.h"

int fb_empty_log(struct fb_replay *run);
int fb_discard_log(struct fb_replay *run);

#endif

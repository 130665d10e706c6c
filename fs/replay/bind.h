/* SPDX-License-Identifier: GPL-2.0-only */
/* Names are bound again below: bind.c */
#ifndef FOREBAY_REPLAY_BIND_H
#define FOREBAY_REPLAY_BIND_H

#include "run.h"

int fb_bind_stage(struct fb_replay *run, const struct nl_node *node);
int fb_bind_add(struct fb_replay *run, const struct nl_binding *binding);
int fb_bind_remove(struct fb_replay *run, const struct nl_binding *binding);

#endif

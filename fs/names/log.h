/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of a mount's name log: log.c */
#ifndef FOREBAY_NAMES_LOG_H
#define FOREBAY_NAMES_LOG_H

#include <linux/fs_context.h>

#include "names.h"

int fb_names_open(struct fb_sb *fsb, struct fs_context *fc);
int fb_names_start(struct fb_sb *fsb, struct fs_context *fc);
int fb_names_stop(struct fb_sb *fsb);
void fb_names_close(struct fb_sb *fsb);
int fb_names_commit_lower(struct fb_sb *fsb);
int fb_names_sync_lower(struct fb_sb *fsb);
int fb_names_empty(struct fb_names *names);
void fb_names_switch_off(struct fb_names *names);
void fb_names_trim_soon(struct fb_names *names);
void fb_names_trim_later(struct fb_names *names);
void fb_names_beat(struct fb_names *names);
void fb_names_beat_if_due(struct fb_names *names);
u64 fb_names_next(struct fb_names *names);
void fb_names_let_go(struct fb_names *names, u64 end);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Mount options: params.c */
#ifndef FOREBAY_VFS_PARAMS_H
#define FOREBAY_VFS_PARAMS_H

#include <linux/fs_context.h>
#include <linux/fs_parser.h>

#include "../forebay.h"

extern const struct fs_parameter_spec fb_parameters[];
const char *fb_mode_name(enum fb_mode mode);
int fb_parse_param(struct fs_context *fc, struct fs_parameter *param);
int fb_set_pin_limits(struct fb_sb *fsb, struct fs_context *fc);
void fb_set_writeback_age(struct fb_sb *fsb, struct fs_context *fc);
struct fb_options *fb_alloc_options(void);
void fb_free_options(struct fs_context *fc);

#endif

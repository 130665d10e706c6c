/* SPDX-License-Identifier: GPL-2.0-only */
/* Mount options and mounting: params.c, super.c */
#ifndef FOREBAY_SUPER_H
#define FOREBAY_SUPER_H

#include <linux/fs_context.h>
#include <linux/fs_parser.h>

#include "forebay.h"

/* Tells who called mount(2) what is wrong and what to do; the value is @err. */
#define fb_fail(fc, err, fmt, ...) ({ errorf(fc, "forebay: " fmt, ##__VA_ARGS__); (err); })

struct fb_options {
	char *cache;
	enum fb_mode mode;
	bool allow_volatile_cache;
	u64 pin_limit, pin_limit_user;	/* bytes; FB_NO_LIMIT: not given */
};

#define FB_NO_LIMIT	U64_MAX

extern const struct fs_parameter_spec fb_parameters[];
int fb_init_fs_context(struct fs_context *fc);
const char *fb_mode_name(enum fb_mode mode);
int fb_set_pin_limits(struct fb_sb *fsb, struct fs_context *fc);
int fb_get_tree(struct fs_context *fc);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Why a mount or a remount fails: fail.c */
#ifndef FOREBAY_FAIL_H
#define FOREBAY_FAIL_H

#include <linux/fs_context.h>

#include "forebay.h"

/* Tells the caller of mount(2) what is wrong and what to do; the value is @err. */
#define fb_fail(fc, err, fmt, ...) ({ fb_error(fc, fmt, ##__VA_ARGS__); (err); })

void fb_error(struct fs_context *fc, const char *fmt, ...) __printf(2, 3);

#endif

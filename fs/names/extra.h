/* SPDX-License-Identifier: GPL-2.0-only */
/* Records behind that of a creation: extra.c */
#ifndef FOREBAY_NAMES_EXTRA_H
#define FOREBAY_NAMES_EXTRA_H

#include "names.h"

#define FB_MAX_EXTRAS	8	/* records; an object with more has a barrier */

/* One of these records. */
struct fb_name_extra {
	struct nl_place place;
	struct nl_change change;
	void *value;			/* memory of change.value */
};

/* What a new object has beyond what the record of its creation says. */
struct fb_name_extras {
	unsigned int nr;
	char *names;			/* of its extended attributes, each with a final 0 */
	struct fb_name_extra extra[FB_MAX_EXTRAS];
};

struct fb_name_extras *fb_extras_find(struct dentry *lower);
bool fb_extras_reserve(struct fb_names *names, struct fb_name_extras *extras,
		       const struct nl_change *creation, const struct nl_count *self);
void fb_extras_take(struct fb_names *names, struct fb_name_extras *extras);
void fb_extras_write(const struct nl *nl, struct fb_name_extras *extras, u64 birth);
void fb_extras_done(struct fb_names *names, struct fb_name_extras *extras);
void fb_extras_free(struct fb_name_extras *extras);

#endif

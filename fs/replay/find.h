/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects below, by handle and time of birth: find.c */
#ifndef FOREBAY_REPLAY_FIND_H
#define FOREBAY_REPLAY_FIND_H

#include "run.h"

/* An identity's handle as the page store has it. */
static inline struct ps_handle fb_handle_of(const struct nl_identity *id)
{
	struct ps_handle handle = { .type = id->type, .len = id->len };

	memcpy(handle.bytes, id->handle, id->len);
	return handle;
}

struct dentry *fb_find_identity(struct fb_sb *fsb, const struct nl_identity *id, bool connected);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* The staging folder: stage.c */
#ifndef FOREBAY_REPLAY_STAGE_H
#define FOREBAY_REPLAY_STAGE_H

#include "run.h"

#define FB_STAGE_NAME	96	/* bytes of the longest name in it */
#define FB_BIRTH_DIGITS	16	/* of the name of an object that is made again */

/* The name of an entry. @suffix: of the note that says where a made directory is, ".at"; or "". */
static inline struct qstr fb_birth_name(char *buf, u64 birth, const char *suffix)
{
	unsigned int len = scnprintf(buf, FB_STAGE_NAME, "%016llx%s", birth, suffix);

	return (struct qstr)QSTR_INIT(buf, len);
}

/* What a moved directory ("d") or a replaced file ("f") is called there. */
static inline struct qstr fb_handle_name(char *buf, char kind, const struct ps_handle *handle)
{
	unsigned int len = scnprintf(buf, FB_STAGE_NAME, "%c%02x%*phN", kind, handle->type, handle->len,
				     handle->bytes);

	return (struct qstr)QSTR_INIT(buf, len);
}

struct qstr fb_stage_name(const struct fb_replay *run, char *buf);
int fb_stage_open(struct fb_replay *run);
int fb_stage_is_made(struct fb_replay *run);
int fb_stage_set_made(struct fb_replay *run);
int fb_stage_is_done(struct fb_replay *run);
int fb_stage_set_done(struct fb_replay *run);
int fb_stage_remove(struct fb_replay *run);
int fb_stage_set_aside(struct fb_replay *run);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* One change of a name or an attribute below: change.c */
#ifndef FOREBAY_REPLAY_CHANGE_H
#define FOREBAY_REPLAY_CHANGE_H

#include "../forebay.h"

/* What becomes of the ctime of a file that gets or loses a name. One that replay makes has none to keep. */
enum fb_ctime { FB_NEW_CTIME, FB_KEEP_CTIME };

#ifdef FB_BREAK_REPLAY	/* a fault on purpose: replay ends before a change, as if power failed */
bool fb_replay_stops(void);
#else
static inline bool fb_replay_stops(void)
{
	return false;
}
#endif

struct dentry *fb_find_name(struct fb_sb *fsb, struct dentry *dir, const struct qstr *name);
struct dentry *fb_make_name(struct fb_sb *fsb, struct dentry *dir, const struct qstr *name, umode_t mode,
			    dev_t rdev, const char *target);
int fb_link_name(struct fb_sb *fsb, struct dentry *object, struct dentry *dir, const struct qstr *name,
		 enum fb_ctime ctime);
int fb_remove_name(struct fb_sb *fsb, struct dentry *dir, const struct qstr *name, bool is_dir,
		   enum fb_ctime ctime);
int fb_move_name(struct fb_sb *fsb, struct dentry *from, const struct qstr *old_name, struct dentry *to,
		 const struct qstr *new_name, enum fb_ctime ctime);
int fb_change_attr(struct fb_sb *fsb, struct dentry *lower, struct iattr *attr,
		   const struct timespec64 *ctime);
int fb_change_flags(struct fb_sb *fsb, struct dentry *object, u32 flags);

#endif

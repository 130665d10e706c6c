/* SPDX-License-Identifier: GPL-2.0-only */
/* What a change of names or attributes leaves in the log: record.c */
#ifndef FOREBAY_NAMES_RECORD_H
#define FOREBAY_NAMES_RECORD_H

#include "names.h"

/* The bit of nl_change.has for a field. */
#define FB_FIELD(field)	(1u << NL_F_##field)

/* A directory that a change may touch, and what the record says of it. */
struct fb_name_dir {
	struct fb_inode *fi;
	struct nl_count *count;
	bool must;			/* its counter rises, or the change can't be recorded */
	u32 field;			/* of @count, as FB_FIELD() */
	s64 ctime_before;		/* in ns */
	bool stepped;			/* @count is from behind the step (begin.c) */
};

/* A change on its way: from before it is made below until its record is whole. */
struct fb_name_record {
	struct fb_names *names;		/* NULL: there is no log */
	bool fits;			/* the log is on, and has space for its record */
	struct nl_place barrier, place;
	struct nl_change change;
	struct fb_name_dir dirs[4];
	unsigned int nr_dirs;
	const struct fb_inode *nameless; /* the file that gets its first name, or NULL */
	const struct inode *object;	/* lower inode of change.object; NULL until it is there */
	s64 mtime, ctime;		/* of that, after the change; in ns */
	umode_t mode_before;		/* of that, before it; if attributes change */
	bool wants_barrier;		/* it can't be recorded in full: commits wait */
	u32 iflags;			/* of NL_IFLAGS: FB_LOGGED_FLAGS after the change */
	struct fb_name_extras *extras;	/* further records of a new object; NULL: there are none */
	u64 end;			/* of the last record; 0: the change left none */
};

void fb_names_end(struct fb_name_record *rec, struct dentry *lower, int err);
bool fb_names_note(const struct fb_name_record *rec, struct inode *inode);

#endif

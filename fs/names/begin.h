/* SPDX-License-Identifier: GPL-2.0-only */
/* Before a change of names or attributes is made below: begin.c */
#ifndef FOREBAY_NAMES_BEGIN_H
#define FOREBAY_NAMES_BEGIN_H

#include "record.h"

void fb_names_begin_create(struct fb_name_record *rec, struct dentry *dentry, umode_t mode,
			   const char *target);
void fb_names_begin_tmpfile(struct fb_name_record *rec, struct fb_sb *fsb);
void fb_names_begin_link(struct fb_name_record *rec, struct dentry *dentry, struct dentry *old);
void fb_names_begin_remove(struct fb_name_record *rec, struct dentry *dentry);
void fb_names_begin_rename(struct fb_name_record *rec, struct dentry *old, struct dentry *new,
			   unsigned int flags, bool unsynced);
void fb_names_begin_attr(struct fb_name_record *rec, struct dentry *dentry, bool whole);
void fb_names_begin_xattr(struct fb_name_record *rec, struct dentry *dentry, const char *name,
			  const void *value, size_t size);
void fb_names_begin_flags(struct fb_name_record *rec, struct dentry *dentry, u32 iflags, bool whole);

#endif

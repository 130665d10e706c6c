/* SPDX-License-Identifier: GPL-2.0-only */
/* The names of a lower directory: list.c */
#ifndef FOREBAY_REPLAY_LIST_H
#define FOREBAY_REPLAY_LIST_H

#include "../forebay.h"

struct fb_names_list;

struct fb_names_list *fb_list_names(struct fb_sb *fsb, struct dentry *dir,
				    bool (*wanted)(const char *name, unsigned int len));
bool fb_list_next(struct fb_names_list *list, struct qstr *name);
void fb_list_free(struct fb_names_list *list);

#endif

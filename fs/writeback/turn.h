/* SPDX-License-Identifier: GPL-2.0-only */
/* A file's turn: turn.c */
#ifndef FOREBAY_WRITEBACK_TURN_H
#define FOREBAY_WRITEBACK_TURN_H

#include "../forebay.h"

void fb_turn_init_once(struct fb_inode *fi);
bool fb_turn(struct fb_inode *fi, unsigned long *budget);

#endif

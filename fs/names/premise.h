/* SPDX-License-Identifier: GPL-2.0-only */
/* Which file systems below can have a name log: premise.c */
#ifndef FOREBAY_NAMES_PREMISE_H
#define FOREBAY_NAMES_PREMISE_H

#include "names.h"

const char *fb_names_unfit(struct fb_sb *fsb);

#endif

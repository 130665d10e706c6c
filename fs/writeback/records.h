/* SPDX-License-Identifier: GPL-2.0-only */
/* File records are taken back: records.c */
#ifndef FOREBAY_WRITEBACK_RECORDS_H
#define FOREBAY_WRITEBACK_RECORDS_H

#include "../forebay.h"

void fb_records_reclaim(struct fb_sb *fsb);

#endif

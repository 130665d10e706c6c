/* SPDX-License-Identifier: GPL-2.0-only */
/* What lower syncs and moves into PMem cost lately: cost.c */
#ifndef FOREBAY_SYNC_COST_H
#define FOREBAY_SYNC_COST_H

#include "../forebay.h"

void fb_costs_init(struct fb_sb *fsb);
void fb_cost_lower(struct fb_sb *fsb, unsigned long pages, u64 start_ns);
void fb_cost_absorbed(struct fb_sb *fsb, unsigned long pages, u64 start_ns);
void fb_cost_overwritten(struct fb_sb *fsb, u64 start_ns);
unsigned long fb_cost_limit(const struct fb_sb *fsb);
bool fb_cost_again(struct fb_sb *fsb);

#endif

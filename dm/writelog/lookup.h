/* SPDX-License-Identifier: GPL-2.0-only */
/* Look-ups of successive blocks in the index: reads (read.c) and neighbours (neighbours.c). */
#ifndef FOREBAY_DM_WRITELOG_LOOKUP_H
#define FOREBAY_DM_WRITELOG_LOOKUP_H

#include "writelog.h"

/* Caches the last region that was looked up. Valid in one section of w->srcu; begins with number U64_MAX. */
struct dwl_lookup {
	struct dwl *w;
	u64 number;
	struct dwl_region *region;
};

/* The index value of a block, marks included; 0: the log doesn't have the block. Context: In w->srcu. */
static inline u64 dwl_look_up(struct dwl_lookup *lookup, u64 block)
{
	u64 number = block >> DWL_REGION_SHIFT;

	if (number != lookup->number) {
		lookup->number = number;
		lookup->region = dwl_index_find(lookup->w, number);
	}
	return lookup->region ? READ_ONCE(lookup->region->block[block & (DWL_REGION_BLOCKS - 1)]) : 0;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* What caches of any size would have held of the pages that sync calls made durable: model.c */
#ifndef FOREBAY_TOOLS_ADVISE_MODEL_H
#define FOREBAY_TOOLS_ADVISE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_WINDOW	30	/* seconds: as old as data get before they are written back, at most */
#define MODEL_SIZES	40	/* powers of two, in pages */

struct model;

struct model_result {
	uint64_t calls, empty_calls;	/* sync calls; those that found no written page */
	uint64_t files;			/* that had pages */
	uint64_t pages, distinct;	/* made durable: with repetitions, and without */
	uint64_t largest;		/* pages of one call */
	uint64_t busiest;		/* distinct pages in the busiest window */
	uint64_t again[MODEL_SIZES];	/* pages that a cache of 2^i pages still had */
	double full[MODEL_SIZES];	/* seconds until 2^i distinct pages; negative: not reached */
};

struct model *model_new(void);
void model_free(struct model *model);
bool model_write(struct model *model, uint64_t file, uint64_t first, uint64_t last);
bool model_sync(struct model *model, uint64_t file, double now, uint64_t *pages);
void model_result(const struct model *model, struct model_result *result);

#endif

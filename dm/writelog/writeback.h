/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writeback: the way of a generation's data to the origin. writelog.h has the structures, and says what
 * each file does. Used by the files declared here, and by target.c and state.c, which start and stop it.
 */
#ifndef FOREBAY_DM_WRITELOG_WRITEBACK_H
#define FOREBAY_DM_WRITELOG_WRITEBACK_H

#include "writelog.h"

/* writeback.c */
int dwl_worker_create(struct dwl *w);
void dwl_worker_run(struct dwl *w);
void dwl_worker_park(struct dwl *w);
void dwl_worker_destroy(struct dwl *w);
bool dwl_worker_must_stop(void);

/* extents.c */
bool dwl_extent_add(struct dwl *w, u64 sector, u64 value, u32 max);
bool dwl_in_flush(const struct dwl *w, u64 sector, u64 value);
void dwl_extents_sort(struct dwl *w);
s64 dwl_extents_collect(struct dwl *w, const struct dwl_gen *gen, struct dwl_cursor *cursor);

/* neighbours.c */
void dwl_neighbours_add(struct dwl *w, const struct dwl_gen *gen);
void dwl_neighbours_written(struct dwl *w, const struct dwl_gen *gen);

/* aside.c */
bool dwl_is_aside(const struct dwl *w, u64 block);
bool dwl_gen_has_aside(struct dwl *w, const struct dwl_gen *gen);
bool dwl_aside_due(struct dwl *w);
int dwl_aside_find(struct dwl *w, int err);
int dwl_aside_retry(struct dwl *w, const struct dwl_gen *gen);

/* origin.c */
int dwl_origin_init(struct dwl *w);
void dwl_origin_exit(struct dwl *w);
int dwl_origin_write_extents(struct dwl *w, bool find_damage);
bool dwl_block_lost(struct dwl *w, const struct dwl_extent *block, void *page);

/* Counts a failed writeback: as damage in the log, as the origin's error, or (no space in the log) not. */
static inline void dwl_count_error(struct dwl *w, int err)
{
	if (err != -EXFULL)
		dwl_count(w, err == -EUCLEAN || err == -ESTALE ? DWL_MEDIUM_ERRORS : DWL_ORIGIN_ERRORS, 1);
}

/* flush.c */
void dwl_origin_flush_begin(struct dwl *w);
int dwl_origin_flush_end(struct dwl *w);

/* fingerprint.c */
int dwl_fp_init(struct dwl *w);
void dwl_fp_exit(struct dwl *w);
int dwl_fp_check(struct dwl *w);
void dwl_fp_begin(struct dwl *w, bool loaded);
void dwl_fp_end(struct dwl *w);
void dwl_fp_changing(struct dwl *w);
void dwl_fp_flushing(struct dwl *w);
void dwl_fp_flushed(struct dwl *w);

#endif

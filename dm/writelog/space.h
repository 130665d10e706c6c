/* SPDX-License-Identifier: GPL-2.0-only */
/* How much space the log has, and how writers wait for it: space.c. */
#ifndef FOREBAY_DM_WRITELOG_SPACE_H
#define FOREBAY_DM_WRITELOG_SPACE_H

#include "writelog.h"

int dwl_space_enter(struct dwl *w, u64 bytes, bool nowait);
int dwl_space_wait_gen(struct dwl *w);
void dwl_space_credit(struct dwl *w, u64 bytes);
void dwl_space_update(struct dwl *w);
void dwl_space_block(struct dwl *w, bool blocked);
void dwl_space_requeue(struct dwl *w, bool requeue);
u32 dwl_space_level(const struct dwl *w);
void dwl_gen_broken(struct dwl *w);

/* Writers wait for space, in the log or in DRAM. */
static inline bool dwl_low_on_space(const struct dwl *w)
{
	return READ_ONCE(w->space.throttled) || READ_ONCE(w->index.starved);
}

/* Free generations that aren't for writers: the last one is for aside.c, unless the log has only two. */
static inline u32 dwl_gens_kept(const struct dwl *w)
{
	return w->wl.nr_gens > 2;
}

/* Free generations that writers may open. */
static inline u32 dwl_free_for_writers(const struct dwl *w)
{
	u32 kept = dwl_gens_kept(w), nr_free = READ_ONCE(w->nr_free);

	return nr_free > kept ? nr_free - kept : 0;
}

/* Generations that the medium can hold. */
static inline u32 dwl_gens_usable(const struct dwl *w)
{
	/* Pairs with smp_store_release() in dwl_gen_broken(): nr_free is at most the result after this. */
	return w->wl.nr_gens - smp_load_acquire(&w->nr_broken);
}

/* Generations that hold something, or may: the current one, and the closed ones. */
static inline u32 dwl_gens_used(const struct dwl *w)
{
	u32 usable = dwl_gens_usable(w);

	return usable - READ_ONCE(w->nr_free);
}

/* No generation will be free for writers any more, not even after writeback. */
static inline bool dwl_gens_exhausted(const struct dwl *w)
{
	return dwl_gens_usable(w) <= dwl_gens_kept(w);
}

#endif

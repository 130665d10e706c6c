/* SPDX-License-Identifier: GPL-2.0-only */
/* Running one operation twice, the second time with a power cut at every point. See cuts.c. */
#ifndef FOREBAY_TESTS_CORE_CUTS_H
#define FOREBAY_TESTS_CORE_CUTS_H

#include "pm_sim.h"

#define CUTS_MAX_ACKS	16

/*
 * struct cuts - an operation on what a reader of the simulated memory finds
 * @size: bytes of the memory
 * @subject: what the operation changes besides
 * @subject_size: bytes of it
 * @op: the operation; calls ack()
 * @note: in the first run: a reader's findings at the start (@nr 0), at each ack(), and at the end
 * @judge: a state that a cut leaves between acknowledgment @at and the next; right after it, if
 *	@acknowledged. Returns what is wrong with the state, or NULL
 */
struct cuts {
	size_t size;
	void *subject;
	size_t subject_size;
	void (*op)(void *subject);
	void (*note)(u32 nr);
	const char *(*judge)(void *image, u32 at, bool acknowledged);
};

/* The operation's word that all it has done so far is durable. */
void ack(void);

const char *cuts_explore(const struct cuts *cuts, enum sim_domain domain, u32 samples,
			 enum sim_sabotage sabotage, u32 nth);

#endif

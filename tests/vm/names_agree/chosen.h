/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one or two names that an op has chosen, and what the kernel must answer to calls with them: rules.c
 *
 * A process has the locks of the names' tops while it uses one of these (play.c).
 */
#ifndef FOREBAY_TEST_NAMES_AGREE_CHOSEN_H
#define FOREBAY_TEST_NAMES_AGREE_CHOSEN_H

#include "model.h"

/* Flags of renameat2(). */
enum {
	NOREPLACE = 1,
	EXCHANGE = 2,
};

struct names {
	uint32_t top[2], sub[2];	/* sub: NAMES: none */
	struct place place[2];
	uint32_t object[2];
	char path[2][40];
};

static inline uint32_t folder_at(uint32_t object)
{
	return model->object[object].folder;
}

static inline enum kind kind_of(uint32_t object)
{
	return object ? model->object[object].kind : NOTHING;
}

unsigned int nr_folders(uint32_t top);
int expected_of_remove(const struct names *names, bool folder);
int expected_of_link(const struct names *names);
int expected_of_rename(const struct names *names, unsigned int flags);
bool too_deep(const struct names *names, unsigned int flags);

#endif

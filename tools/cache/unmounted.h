/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Caches that are not mounted although they hold data that their lower directory lacks.
 */
#ifndef FOREBAY_TOOLS_UNMOUNTED_H
#define FOREBAY_TOOLS_UNMOUNTED_H

#include "device/store.h"

struct unmounted {
	const struct device *dev;
	const struct ps *ps;
	const struct store_counts *counts;
};

typedef void (*unmounted_fn)(void *arg, const struct unmounted *cache);

void unmounted_each(unmounted_fn fn, void *arg);
bool say_older(const char *folder);

#endif

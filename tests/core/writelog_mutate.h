/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mutated write logs: see writelog_mutate.c.
 */
#ifndef FOREBAY_TESTS_CORE_WRITELOG_MUTATE_H
#define FOREBAY_TESTS_CORE_WRITELOG_MUTATE_H

#include "pm/env.h"

void log_mutate(u8 *image, u64 size);

#endif

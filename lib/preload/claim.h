/* SPDX-License-Identifier: GPL-2.0-only */
/* A process may append to a log, or not. */
#ifndef FOREBAY_LIB_PRELOAD_CLAIM_H
#define FOREBAY_LIB_PRELOAD_CLAIM_H

#include <stdbool.h>

#include "table.h"

bool entry_claim(struct entry *entry);
bool entry_is_parents(struct entry *entry);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* A file is about to be opened, truncated or asked for its size. */
#ifndef FOREBAY_LIB_PRELOAD_OPEN_H
#define FOREBAY_LIB_PRELOAD_OPEN_H

#include <stdbool.h>

enum purpose { TO_READ, TO_WRITE };

int open_prepare(int directory, const char *path, bool match, enum purpose purpose);

#endif

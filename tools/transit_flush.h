/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Having a transit cache written down, with progress.
 */
#ifndef FOREBAY_TOOLS_TRANSIT_FLUSH_H
#define FOREBAY_TOOLS_TRANSIT_FLUSH_H

#include <stdbool.h>

#include "verb.h"

enum exit_status transit_write_down(const char *name, bool quiet);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a target write down all that it holds, with progress.
 */
#ifndef FOREBAY_TOOLS_WRITE_DOWN_H
#define FOREBAY_TOOLS_WRITE_DOWN_H

#include "mapped.h"

enum exit_status write_down(const char *name, const struct mapped_kind *kind, const char *message,
			    bool quiet);
void advise_on_mode(const char *name);

#endif

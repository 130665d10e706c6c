/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Having a write log written back, with progress.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_FLUSH_H
#define FOREBAY_TOOLS_WRITELOG_FLUSH_H

#include <stdbool.h>

#include "verb.h"

enum exit_status writelog_write_back(const char *name, const char *message, bool quiet);

#endif

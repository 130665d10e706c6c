/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Having a write log written back, with progress.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_FLUSH_H
#define FOREBAY_TOOLS_WRITELOG_FLUSH_H

#include "verb.h"
#include "writelog_target.h"

bool find_target(const char *name, struct writelog_target *target);
void say_mode(const char *name);
enum exit_status write_all_back(const char *name, const char *message, bool quiet);

#endif

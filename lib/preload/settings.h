/* SPDX-License-Identifier: GPL-2.0-only */
/* What `forebay log-preload` was asked for. */
#ifndef FOREBAY_LIB_PRELOAD_SETTINGS_H
#define FOREBAY_LIB_PRELOAD_SETTINGS_H

#include <forebay-log.h>
#include <limits.h>
#include <stdbool.h>

bool settings_match(const char *path);
bool settings_match_descriptor(int fd, char path[PATH_MAX]);
const struct forebay_log_options *settings_options(void);
void settings_say(const char *path, const char *what);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which kernel runs, and for which kernels Forebay's modules are installed.
 */
#ifndef FOREBAY_TOOLS_RELEASE_H
#define FOREBAY_TOOLS_RELEASE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define ADVICE_TEXT	512

void running_release(char release[NAME_MAX + 1]);
bool module_path(const char *release, const char *module, char path[PATH_MAX]);
bool module_is_elsewhere(const char *module, char text[ADVICE_TEXT]);
const char *module_advice(const char *module, char text[ADVICE_TEXT]);

#endif

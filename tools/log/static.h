/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that are linked statically: static.c */
#ifndef FOREBAY_TOOLS_STATIC_H
#define FOREBAY_TOOLS_STATIC_H

#include <stdbool.h>

bool is_static(const char *command);

#endif

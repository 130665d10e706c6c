/* SPDX-License-Identifier: GPL-2.0-only */
/* The name of a file that a process has open: file_name.c */
#ifndef FOREBAY_TOOLS_FILE_NAME_H
#define FOREBAY_TOOLS_FILE_NAME_H

#include <stddef.h>

struct caller;

void file_name(const struct caller *caller, char *name, size_t size);

#endif

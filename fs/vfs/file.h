/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Regular files: file.c
 *
 * Floor 8, vfs: the kernel's entry points. Each is thin: what has to be decided, a floor below decides.
 * May use: everything below. Used by: the kernel alone.
 */
#ifndef FOREBAY_VFS_FILE_H
#define FOREBAY_VFS_FILE_H

#include "../forebay.h"

extern const struct file_operations fb_file_operations;

#endif

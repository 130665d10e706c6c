/* SPDX-License-Identifier: GPL-2.0-only */
/* Directories: dir.c */
#ifndef FOREBAY_VFS_DIR_H
#define FOREBAY_VFS_DIR_H

#include "../forebay.h"

extern const struct file_operations fb_dir_operations;

#endif

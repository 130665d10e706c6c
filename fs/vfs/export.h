/* SPDX-License-Identifier: GPL-2.0-only */
/* File handles: export.c */
#ifndef FOREBAY_VFS_EXPORT_H
#define FOREBAY_VFS_EXPORT_H

#include <linux/exportfs.h>

#include "../forebay.h"

extern const struct export_operations fb_export_operations;

#endif

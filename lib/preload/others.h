/* SPDX-License-Identifier: GPL-2.0-only */
/* Other descriptors of a file. */
#ifndef FOREBAY_LIB_PRELOAD_OTHERS_H
#define FOREBAY_LIB_PRELOAD_OTHERS_H

#include <sys/stat.h>

int others_have(int fd, int own, const struct stat *file);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that Forebay is built for, a header for each subject. No other file asks
 * which kernel it is. A header has functions in the shape of the newest kernel, and adapts an older kernel
 * to them. Where that would change what an older kernel gets, the header has a small type or macro of its
 * own.
 *
 * features.sh looks up what a kernel has in the kernel's headers, when the modules are built. It doesn't go
 * by version numbers, because a distribution's kernel has changes of newer ones.
 *
 * May use: the kernel. Used by: core, fs, dm, emu.
 */
#ifndef FOREBAY_COMPAT_COMPAT_H
#define FOREBAY_COMPAT_COMPAT_H

#include "features.h"

#endif

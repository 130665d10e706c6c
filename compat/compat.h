/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that Forebay is built for, a header for each subject. No other file
 * asks which kernel it is. A header has functions in the shape of the newest kernel, and adapts an older
 * kernel to them; where that would change what an older kernel gets, it has a small type or macro of its
 * own.
 *
 * Which kernel has what is looked up in the kernel's headers when the modules are built (features.sh),
 * not in a version number: a distribution's kernel has changes of newer ones.
 *
 * May use: the kernel. Used by: core, fs, dm, emu.
 */
#ifndef FOREBAY_COMPAT_COMPAT_H
#define FOREBAY_COMPAT_COMPAT_H

#include "features.h"

#endif

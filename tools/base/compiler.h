/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two shorthands, as the kernel has them.
 */
#ifndef FOREBAY_TOOLS_COMPILER_H
#define FOREBAY_TOOLS_COMPILER_H

#define ARRAY_SIZE(array)		(sizeof(array) / sizeof((array)[0]))
#define __printf(string, args)	__attribute((format(printf, string, args)))

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names in the commands that messages propose.
 */
#ifndef FOREBAY_TOOLS_SHELL_H
#define FOREBAY_TOOLS_SHELL_H

const char *in_shell(const char *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Emulated persistent memory, for the verbs of `forebay emu`.
 *
 * emu/ uses base/, sys/, mapped/ for what uses a device, and format_cache() of cache/.
 */
#ifndef FOREBAY_TOOLS_EMU_H
#define FOREBAY_TOOLS_EMU_H

#include <linux/forebay_emu.h>
#include <stdbool.h>

#define EMU_DISK	"forebay-emu"

int emu_control(unsigned long request, void *argument);
bool emu_index(const char *name, __u32 *index);

#endif

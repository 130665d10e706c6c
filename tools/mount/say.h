/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How mount.forebay talks: "mount.forebay: /srv/db: what is wrong", on standard error.
 */
#ifndef FOREBAY_TOOLS_MOUNT_SAY_H
#define FOREBAY_TOOLS_MOUNT_SAY_H

#include "base/compiler.h"

void say_about(const char *target);
void say(const char *format, ...) __printf(1, 2);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a device may be formatted, and whether that succeeded.
 */
#ifndef FOREBAY_TOOLS_FITNESS_H
#define FOREBAY_TOOLS_FITNESS_H

#include "device.h"

bool device_usable(const struct device *dev);
bool device_may_format(const struct device *dev, bool force, const char *wrong);
void device_write_failed(const struct device *dev);
bool device_wipe(const struct device *dev);
bool device_formatted(const struct device *dev);

#endif

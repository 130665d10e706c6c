/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * May a device be formatted?
 */
#ifndef FOREBAY_TOOLS_FITNESS_H
#define FOREBAY_TOOLS_FITNESS_H

#include "store.h"

bool usable(const struct device *dev);
bool unclaimed(const struct device *dev);
bool formatted(const struct device *dev);

#endif

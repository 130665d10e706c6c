/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a device holds data of a cache or write log that are nowhere else. Verbs that overwrite a device
 * ask this first.
 */
#ifndef FOREBAY_TOOLS_WORTH_H
#define FOREBAY_TOOLS_WORTH_H

#include "store.h"

bool expendable(const struct device *dev);

#endif

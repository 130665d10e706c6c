/* SPDX-License-Identifier: GPL-2.0-only */
/* Old pages are written back while storage is idle: age.c */
#ifndef FOREBAY_WRITEBACK_AGE_H
#define FOREBAY_WRITEBACK_AGE_H

#include "../forebay.h"

void fb_age_work(struct work_struct *work);

#endif

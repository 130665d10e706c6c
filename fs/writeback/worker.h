/* SPDX-License-Identifier: GPL-2.0-only */
/* The worker, and when it works: worker.c */
#ifndef FOREBAY_WRITEBACK_WORKER_H
#define FOREBAY_WRITEBACK_WORKER_H

#include "../forebay.h"

void fb_writeback_work(struct work_struct *work);

#endif

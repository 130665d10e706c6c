/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of libdevmapper: for query.c and create.c only.
 */
#ifndef FOREBAY_TOOLS_TASK_H
#define FOREBAY_TOOLS_TASK_H

#include <libdevmapper.h>
#include <stdbool.h>

struct dm_task *task_new(int type, const char *name);
void task_problem(const char *name, const char *what);
bool task_run_with_udev(struct dm_task *task);
bool task_info(const char *name, struct dm_info *info);

#endif

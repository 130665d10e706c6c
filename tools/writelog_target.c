// SPDX-License-Identifier: GPL-2.0-only
/*
 * The status line of docs/writelog.md; docs and the target's status function go
 * together with this.
 */
#include <stdio.h>

#include "mapped.h"
#include "writelog_target.h"

/**
 * target_parse - take apart what a write log says
 * @target: @mapped is filled in already
 *
 * Return: false if it says something else than this command expects.
 */
bool target_parse(struct writelog_target *target)
{
	int values = 0;

	if (sscanf(target->mapped.status, "%15s %15s %lu/%lu %lu/%lu %*u %n", target->health, target->mode,
		   &target->generations_used, &target->generations_total, &target->bytes_used,
		   &target->bytes_total, &values) < 6 || !values)
		return false;
	target->values = target->mapped.status + values;
	return sscanf(target->mapped.table, "%63s %63s", target->origin, target->log) == 2;
}

/**
 * target_read - what a write log that is in use says
 * @name: of the mapped device
 * @target: filled in
 *
 * Return: false if there is no such device, or it is something else.
 */
bool target_read(const char *name, struct writelog_target *target)
{
	return mapped_read(name, WRITELOG_TARGET, &target->mapped) && target_parse(target);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The status line of docs/transit.md; docs and the target's status function go
 * together with this.
 */
#include <stdio.h>
#include <unistd.h>

#include "message.h"
#include "transit_target.h"

/**
 * transit_read - what a transit cache says
 * @name: of the mapped device
 * @target: filled in
 *
 * Return: false if there is no such device, or it is something else.
 */
bool transit_read(const char *name, struct transit_target *target)
{
	int values = 0, options = 0;

	*target = (struct transit_target){ };
	if (!mapped_read(name, TRANSIT_TARGET, &target->mapped))
		return false;
	if (sscanf(target->mapped.status, "%15s %15s %lu/%lu %*u %n", target->health, target->policy,
		   &target->slots_used, &target->slots_total, &values) < 4)
		return false;
	target->values = target->mapped.status + values;
	if (sscanf(target->mapped.table, "%63s%n %*u %n", target->device, &options, &options) < 1)
		return false;
	target->options = target->mapped.table + options;
	return true;
}

/**
 * transit_find - the same for one that must be there
 * @name: of the mapped device
 * @target: filled in
 *
 * Return: false, after a message, if there is no such device.
 */
bool transit_find(const char *name, struct transit_target *target)
{
	if (transit_read(name, target))
		return true;
	problem("%s is no device with a transit cache", name);
	advice("`forebay transit status` lists them.%s", geteuid() ? " It needs root." : "");
	return false;
}

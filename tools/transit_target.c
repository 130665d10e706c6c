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
 * transit_parse - take apart what a transit cache says
 * @target: @mapped is filled in already, the rest is zero
 *
 * Return: false if it says something else than this command expects.
 */
bool transit_parse(struct transit_target *target)
{
	int values = 0, options = 0;

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
 * transit_find - read a transit cache that must be in use
 * @name: of the mapped device
 * @target: filled in
 *
 * Return: false, after a message, if there is no such device.
 */
bool transit_find(const char *name, struct transit_target *target)
{
	*target = (struct transit_target){ };
	if (mapped_read(name, TRANSIT_TARGET, &target->mapped))
		return transit_parse(target) || mapped_strange(name);
	problem("%s is no device with a transit cache", name);
	advice("`forebay transit status` lists them.%s", geteuid() ? " It needs root." : "");
	return false;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The options and the status line of docs/transit.md; docs and the target's params.c and
 * status.c go together with this.
 */
#include <stdio.h>

#include "options.h"
#include "transit_target.h"

static const struct target_option options[] = {
	{ "cache_size", false, "in bytes, or with a suffix such as M, at most half of the memory; 512M, or\n"
	  "                      a sixteenth of the memory if that is less" },
	{ "block_size", false, "what is cached at a time, and the smallest write: 512, 1024, 2048 or 4096;\n"
	  "                      default: the device's physical block size" },
	{ "workers", true, "threads that write to the device, 1 to 64; default: the number of\n"
	  "                      processors" },
	{ "policy", false, "transit (the default), pmbd, pmbd70, lru, coactive or none" },
	{ "eager_eviction", true, "on (the default): what is written goes to the device at once; off" },
	{ "bypass", true, "on (the default): if the cache is full writers write to the device; off" },
	{ }
};

const struct mapped_kind transit_kind = {
	.target = "forebay-transit",
	.noun = "transit",
	.what = "transit cache",
	.options = options,
};

/**
 * transit_parse - take apart what a transit cache says
 * @target: @mapped is filled in already, the rest is zero
 *
 * Return: false if it says something else than this command expects.
 */
bool transit_parse(struct transit_target *target)
{
	int values = 0, options_at = 0;

	if (sscanf(target->mapped.status, "%15s %15s %lu/%lu %*u %n", target->health, target->policy,
		   &target->slots_used, &target->slots_total, &values) < 4 || !values)
		return false;
	target->values = target->mapped.status + values;
	if (sscanf(target->mapped.table, "%63s%n %*u %n", target->device, &options_at,
		   &options_at) < 1)
		return false;
	target->options = target->mapped.table + options_at;
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
	return mapped_find(name, &transit_kind, &target->mapped) &&
	       (transit_parse(target) || mapped_strange(name));
}

// SPDX-License-Identifier: GPL-2.0-only
/* Gathers every mounted cache, write log and transit cache. */
#include "cache/status.h"
#include "mapped/mapped.h"
#include "transit/status.h"
#include "writelog/status.h"
#include "gather.h"

/**
 * gather_groups - gather the state of all that is in use
 * @groups: set to arrays, which the caller frees, also after a failure
 *
 * Return: false, after a message, if one can't be read: a part would look like all there is.
 */
bool gather_groups(struct json_object *groups[NR_GROUPS])
{
	for (int i = 0; i < NR_GROUPS; i++)
		groups[i] = json_object_new_array();
	if (!gather_mounted_caches(groups[CACHES]))
		return false;
	return !mapped_any() || (mapped_each(&writelog_kind, writelog_gather, groups[WRITELOGS]) &&
				 mapped_each(&transit_kind, transit_gather, groups[TRANSITS]));
}

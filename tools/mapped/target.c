// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes apart the status and table lines of docs/writelog.md and docs/transit.md. The targets' status.c
 * and params.c write them.
 */
#include <stdio.h>

#include "target.h"

/* "HEALTH MODE USED/TOTAL [USED/TOTAL] N KEY VALUE..." */
static bool parse_status(const struct mapped_kind *kind, struct target *target)
{
	struct amount *const amounts[] = { &target->pieces, &target->bytes };
	const char *text = target->mapped.status;
	int len = 0;

	if (sscanf(text, "%15s %15s%n", target->health, target->mode, &len) < 2)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(amounts) && i < kind->amounts; i++) {
		text += len;
		if (sscanf(text, "%lu/%lu%n", &amounts[i]->used, &amounts[i]->total, &len) < 2)
			return false;
	}
	text += len;
	len = 0;
	if (sscanf(text, "%*u %n", &len) < 0 || !len)
		return false;
	target->values = text + len;
	return true;
}

/* "DEVICE [LOG] N KEY VALUE..." */
static bool parse_table(const struct mapped_kind *kind, struct target *target)
{
	char *const devices[] = { target->below, target->log };
	const char *text = target->mapped.table;
	int len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(devices) && i < kind->devices; i++) {
		if (sscanf(text, "%63s%n", devices[i], &len) < 1)
			return false;
		text += len;
	}
	len = 0;
	if (sscanf(text, "%*u %n", &len) < 0)
		len = 0;
	target->options = text + len;
	return true;
}

/**
 * target_parse - take apart what a target says
 * @kind: of target
 * @target: @mapped is filled in already, the rest is zero
 *
 * Return: false if it says something else than this command expects.
 */
bool target_parse(const struct mapped_kind *kind, struct target *target)
{
	return parse_status(kind, target) && parse_table(kind, target);
}

/**
 * target_read - read a target that may be in use
 * @name: of the mapped device
 * @kind: of target
 * @target: filled in
 *
 * Return: false if there is no such device, or this command doesn't understand what it says.
 */
bool target_read(const char *name, const struct mapped_kind *kind, struct target *target)
{
	*target = (struct target){ };
	return mapped_read(name, kind, &target->mapped) && target_parse(kind, target);
}

/**
 * target_find - read a target that must be in use
 * @name: of the mapped device
 * @kind: of target
 * @target: filled in
 *
 * Return: false, after a message, if there is no such device.
 */
bool target_find(const char *name, const struct mapped_kind *kind, struct target *target)
{
	*target = (struct target){ };
	return mapped_find(name, kind, &target->mapped) &&
	       (target_parse(kind, target) || mapped_strange(name));
}

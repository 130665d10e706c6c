// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of write logs and transit caches in use, by what their targets say.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/shell.h"
#include "mapped/mapped.h"
#include "mapped/target.h"
#include "sys/sysfs.h"
#include "doctor.h"

/* Percent of a log that may be in use. */
#define MAX_USED	90

static bool judge_log(void *arg, const char *name, const struct mapped *mapped)
{
	struct target target = { .mapped = *mapped };
	struct doctor *doctor = arg;

	if (!target_parse(&writelog_kind, &target)) {
		unseen(doctor, name, "this command doesn't understand its status: command and module differ");
		return true;
	}
	if (!strcmp(target.health, "failed")) {
		found(doctor, ERROR, name,
		      "the write log refuses writes: it is full or soon will be, and can't be written back; or its memory can't hold them");
		mend(doctor, "forebay writelog status %s; dmesg (writes go on by themselves when the cause is mended)",
		     in_shell(name));
	} else if (strcmp(target.health, "ok")) {
		found(doctor, ERROR, name,
		      "the origin of the write log refuses writes, which stay in the log");
		mend(doctor, "forebay writelog status %s; dmesg", in_shell(name));
	}
	if (mapped_value(target.values, "medium_errors") || mapped_value(target.values, "lost_reads")) {
		found(doctor, ERROR, name, "the write log is damaged: its persistent memory lost data");
		mend(doctor, "ndctl list -M; forebay writelog status %s", in_shell(name));
	}
	if (target.pieces.used * 100 > target.pieces.total * MAX_USED) {
		found(doctor, WARNING, name,
		      "%lu of %lu generations of the write log are in use, so writers wait for the origin",
		      target.pieces.used, target.pieces.total);
		mend(doctor, "forebay writelog flush %s; if that recurs, a larger log", in_shell(name));
	}
	return true;
}

static bool judge_transit(void *arg, const char *name, const struct mapped *mapped)
{
	struct target target = { .mapped = *mapped };
	struct doctor *doctor = arg;

	if (!target_parse(&transit_kind, &target)) {
		unseen(doctor, name, "this command doesn't understand its status: command and module differ");
	} else if (strcmp(target.health, "ok")) {
		found(doctor, ERROR, name,
		      "the device of the transit cache refuses writes, and a power cut takes them");
		mend(doctor, "forebay transit status %s; dmesg", in_shell(name));
	}
	return true;
}

/**
 * check_targets - write logs and transit caches in use are healthy and have space
 * @doctor: takes the findings
 */
void check_targets(struct doctor *doctor)
{
	char path[PATH_MAX];

	if (!mapped_any())
		return;
	if (access(kernel_path(path, "/dev/mapper/control"), R_OK | W_OK)) {
		unseen(doctor, "device-mapper", "can't ask it for write logs and transit caches: %s",
		       strerror(errno));
		return;
	}
	mapped_each(&writelog_kind, judge_log, doctor);
	mapped_each(&transit_kind, judge_transit, doctor);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * How mount.forebay talks.
 */
#include <stdarg.h>
#include <stdio.h>

#include "say.h"

static const char *about;

/**
 * say_about - put a mount point at the head of all messages from now on
 * @target: the mount point
 */
void say_about(const char *target)
{
	about = target;
}

/**
 * say - print a message on standard error
 * @format: a sentence, as for printf()
 */
void say(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "mount.forebay: %s%s", about ? about : "", about ? ": " : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * How mount.forebay talks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/message.h"
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
 * @format: a sentence, as for printf(); control characters, of a path for example, are printed as "?"
 */
void say(const char *format, ...)
{
	char *text = NULL, *line = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (text && asprintf(&line, "%s%s%s", about ?: "", about ? ": " : "", text) < 0)
		line = NULL;
	fprintf(stderr, "mount.forebay: %s\n", line ? make_harmless(line) : "out of memory");
	free(line);
	free(text);
}

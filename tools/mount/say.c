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
	va_list args;
	char *text;

	va_start(args, format);
	text = text_about(about, format, args);
	va_end(args);
	fprintf(stderr, "mount.forebay: %s\n", text ?: "out of memory");
	free(text);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Quotes names for a shell. A message proposes a command for the reader to copy. With a name in it that has
 * a space or a quote, the shell would otherwise run another command than the one that was meant.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "shell.h"

#define HARMLESS	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
#define MAX_SHOWN	4	/* names in one message */
#define MAX_ESCAPED	4	/* bytes that one byte becomes */

/* A byte beyond ASCII is a letter of UTF-8, or harmless to a shell all the same. */
static bool is_plain(const char *name)
{
	for (; *name; name++)
		if (!((unsigned char)*name & 0x80) && !strchr(HARMLESS, *name))
			return false;
	return true;
}

static bool has_control(const char *name)
{
	for (; *name; name++)
		if (control_length(name))
			return true;
	return false;
}

/* Within single quotes a shell takes all but a single quote as it is. */
static char *quote(char *to, const char *name)
{
	*to++ = '\'';
	for (; *name; name++)
		if (*name == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *name;
	*to++ = '\'';
	return to;
}

/* As bash and zsh read it. A message shows no control characters, so escapes stand for them. */
static char *escape(char *to, const char *name)
{
	to = stpcpy(to, "$'");
	for (; *name; name++) {
		if (*name < ' ' || *name == 127)	/* also a byte beyond ASCII: char is signed */
			to += sprintf(to, "\\%03o", (unsigned char)*name);
		else if (*name == '\'' || *name == '\\')
			to += sprintf(to, "\\%c", *name);
		else
			*to++ = *name;
	}
	*to++ = '\'';
	return to;
}

/**
 * in_shell - a name as one word of a command, for a message
 * @name: of a file, a device or a mapped device
 *
 * A name that begins with a dash gets "./" before it, so that no command takes it for an option.
 *
 * Return: @name, or a copy in quotes, valid until the fourth call from now.
 */
const char *in_shell(const char *name)
{
	static char *shown[MAX_SHOWN];
	static unsigned int next;
	bool plain = is_plain(name) && !has_control(name);
	char *text, *end;

	if (plain && *name && *name != '-')
		return name;
	text = malloc(MAX_ESCAPED * strlen(name) + sizeof("./$''"));
	if (!text)
		return name;
	free(shown[next]);
	shown[next] = text;
	next = (next + 1) % MAX_SHOWN;
	end = *name == '-' ? stpcpy(text, "./") : text;
	if (plain && *name)
		end = stpcpy(end, name);
	else
		end = has_control(name) ? escape(end, name) : quote(end, name);
	*end = '\0';
	return text;
}

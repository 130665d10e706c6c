// SPDX-License-Identifier: GPL-2.0-only
/* The history of each process, and violations: what a call may return, and what is printed if it doesn't. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

/* Records the operation that begins now in the process's history. */
void note(const char *format, ...)
{
	struct past *past = &me->history[me->past++ % HISTORY];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(past->text, sizeof(past->text), format, arguments);
	va_end(arguments);
}

/* Marks the begin of a system call, and with "" its end. */
void call(const char *name)
{
	me->since = now();
	snprintf(me->call, sizeof(me->call), "%s", name);
	me->told = false;
}

void tell_history(const struct actor *actor)
{
	unsigned int from = actor->past > HISTORY ? actor->past - HISTORY : 0;

	for (; from < actor->past; from++)
		fprintf(stderr, "    %d: %.*s\n", actor->number, (int)sizeof(struct past), actor->history[from % HISTORY].text);
}

void violation(const char *kind, const char *format, ...)
{
	unsigned int nr = __sync_add_and_fetch(&shared->violations, 1);
	char text[400];
	va_list arguments;

	if (nr > MOST_TOLD)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "VIOLATION %s: process %d (pid %d, uid %d), operation %llu: %s\n", kind, me ? me->number : -1, getpid(), getuid(),
		me ? (unsigned long long)me->operations : 0, text);
	if (me)
		tell_history(me);
}

bool stock_failure(long result, int error)
{
	return plain && result < 0 && (error == EIO || error == EAGAIN);
}

/* Ends a system call and checks its result: any error that is not allowed is a violation. */
long expect(const char *what, long result, const int *allowed)
{
	int error = errno;

	call("");
	if (result >= 0)
		return result;
	if (error == EIO && may_have_collided)
		return -error;
	for (; *allowed; allowed++)
		if (error == *allowed)
			return -error;
	violation(error == EIO ? "EIO" : "error", "%s: %s", what, strerror(error));
	return -error;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which processes make sync calls on which files. The trace event forebay:fb_sync tells of each call.
 *
 * The event is on from callers_begin() to callers_end(), in an instance of tracefs of this process's own, so
 * other users of tracing notice nothing. The instance has a buffer for each processor. A full buffer loses
 * its oldest calls, so callers_read() is called some times a second.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "callers.h"
#include "sys/tracing.h"

#define SYSTEM		"forebay"
#define EVENT		"fb_sync"
#define STORAGE		2	/* the event's kind */
#define BUFFER_KIB	4096	/* for each processor; a call takes about 60 bytes */

struct callers {
	struct tracing tracing;
	void *tree;			/* of what list.caller points to */
	struct look list;
	double start;			/* of this look */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	const struct caller *one = a, *other = b;

	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	if (one->dev != other->dev)
		return one->dev < other->dev ? -1 : 1;
	return (one->inode > other->inode) - (one->inode < other->inode);
}

static int by_calls(const void *a, const void *b)
{
	const struct caller *one = *(struct caller *const *)a, *other = *(struct caller *const *)b;

	if (one->calls != other->calls)
		return one->calls < other->calls ? 1 : -1;
	return compare(one, other);
}

/* Finds what is equal to @key, or adds a copy of it. */
static struct caller *find_or_add(struct callers *callers, const struct caller *key)
{
	struct look *list = &callers->list;
	struct caller **node = tsearch(key, &callers->tree, compare);

	if (node && *node == key) {
		list->caller = reallocarray(list->caller, list->n + 1, sizeof(*list->caller));
		*node = malloc(sizeof(*key));
		if (!list->caller || !*node)
			abort();
		**node = *key;
		list->caller[list->n++] = *node;
	}
	if (!node)
		abort();
	return *node;
}

static uint64_t value(struct tep_event *event, struct tep_record *record, const char *field)
{
	unsigned long long number = 0;

	tep_get_field_val(NULL, event, field, record, &number, 0);
	return number;
}

static int take(struct tep_event *event, struct tep_record *record, int cpu, void *arg)
{
	struct callers *callers = arg;
	struct caller key = { }, *caller;
	uint64_t dev, ns;
	char *program;
	int size = 0;

	(void)cpu;
	callers->list.lost |= !!record->missed_events;
	if (strcmp(event->name, EVENT))
		return 0;
	dev = value(event, record, "dev");
	ns = value(event, record, "ns");
	program = tep_get_field_raw(NULL, event, "comm", record, &size, 0);
	key.pid = value(event, record, "pid");
	key.dev = makedev(dev >> 20, dev & 0xfffff);	/* as the kernel numbers devices within itself */
	key.inode = value(event, record, "ino");
	if (program)
		snprintf(key.program, sizeof(key.program), "%.*s", size, program);
	caller = find_or_add(callers, &key);
	caller->calls++;
	caller->below += value(event, record, "kind") == STORAGE;
	caller->bins[ns ? 64 - __builtin_clzll(ns) : 0]++;
	return 0;
}

static const char *begin(struct callers *callers)
{
	static const char *const systems[] = { SYSTEM, NULL };
	const char *why = tracing_begin(&callers->tracing, "top", systems, BUFFER_KIB);

	if (why)
		return why;
	if (!tracefs_event_file_exists(callers->tracing.instance, SYSTEM, EVENT, "enable"))
		return "the kernel has no trace event forebay:fb_sync: no module 'forebay', or an old one";
	if (tracefs_event_enable(callers->tracing.instance, SYSTEM, EVENT))
		return "the kernel's trace event forebay:fb_sync can't be used";
	return NULL;
}

/**
 * callers_begin - from now on, sync calls are counted
 * @why: set to a message if that isn't possible
 *
 * Return: for callers_end(), or NULL.
 */
struct callers *callers_begin(const char **why)
{
	struct callers *callers = calloc(1, sizeof(*callers));

	if (!callers)
		abort();
	callers->start = now();
	*why = begin(callers);
	if (!*why)
		return callers;
	callers_end(callers);
	return NULL;
}

/* Takes the calls that the kernel has noted. */
void callers_read(struct callers *callers)
{
	struct tracing *tracing = &callers->tracing;

	/* Without any event it fails, too. */
	tracefs_iterate_raw_events(tracing->events, tracing->instance, NULL, 0, take, callers);
}

/**
 * callers_look - all calls since callers_begin() or callers_next()
 * @callers: from callers_begin()
 * @look: filled in; lives until callers_next() or callers_end()
 */
void callers_look(struct callers *callers, struct look *look)
{
	callers_read(callers);
	callers->list.seconds = now() - callers->start;
	if (callers->list.n)
		qsort(callers->list.caller, callers->list.n, sizeof(*callers->list.caller), by_calls);
	*look = callers->list;
}

/* Begins the next look, without calls. */
void callers_next(struct callers *callers)
{
	tdestroy(callers->tree, free);
	free(callers->list.caller);
	callers->tree = NULL;
	callers->list = (struct look){ };
	callers->start = now();
}

void callers_end(struct callers *callers)
{
	callers_next(callers);
	tracing_end(&callers->tracing);
	free(callers);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trace events of the kernel, for this process alone. Other users of tracing notice nothing. A process that
 * is killed leaves its instance behind, which rmdir(1) removes.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "rights.h"
#include "tracing.h"

/**
 * tracing_begin - make an instance; no event is on yet
 * @tracing: filled in, for tracing_end(), also after a failure
 * @what: the verb that traces, for the instance's name
 * @systems: whose events will be read; the last is NULL
 * @buffer_kib: of each processor
 *
 * Return: NULL, or why that isn't possible, for a message.
 */
const char *tracing_begin(struct tracing *tracing, const char *what, const char *const *systems,
			  unsigned int buffer_kib)
{
	char name[60];

	*tracing = (struct tracing){ };
	snprintf(name, sizeof(name), "forebay-%s-%d", what, getpid());
	tracing->instance = tracefs_instance_create(name);
	if (!tracing->instance)
		return rights_lacking() ? "that takes root, with all its rights" :
		       "there is no tracefs in /sys/kernel/tracing, or the kernel is locked down";
	tracefs_instance_set_buffer_size(tracing->instance, buffer_kib, -1);
	tracing->events = tracefs_local_events_system(NULL, systems);
	return tracing->events ? NULL : "the formats of the kernel's trace events can't be read";
}

/**
 * tracing_signals - the signals that end a process before it could end its tracing
 * @signals: set to them; SIGPIPE comes when the output has no reader any more
 */
void tracing_signals(sigset_t *signals)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

	sigemptyset(signals);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		sigaddset(signals, ends[i]);
}

/* Ends all events of the instance, and removes it. */
void tracing_end(struct tracing *tracing)
{
	if (tracing->instance) {
		tracefs_event_disable(tracing->instance, NULL, NULL);
		tracefs_instance_destroy(tracing->instance);
		tracefs_instance_free(tracing->instance);
	}
	tep_free(tracing->events);
}

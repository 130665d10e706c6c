/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trace events of the kernel, for this process alone: in an instance of tracefs, with buffers of its own.
 */
#ifndef FOREBAY_TOOLS_TRACING_H
#define FOREBAY_TOOLS_TRACING_H

#include <signal.h>
#include <tracefs.h>

struct tracing {
	struct tracefs_instance *instance;
	struct tep_handle *events;	/* of the systems asked for */
};

const char *tracing_begin(struct tracing *tracing, const char *what, const char *const *systems,
			  unsigned int buffer_kib);
void tracing_signals(sigset_t *signals);
void tracing_end(struct tracing *tracing);

#endif

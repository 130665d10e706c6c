/* SPDX-License-Identifier: GPL-2.0-only */
/* The latencies of a target's phases, as the answer to a message. */
#ifndef FOREBAY_DM_LATENCY_H
#define FOREBAY_DM_LATENCY_H

#include <linux/device-mapper.h>

#include "../core/latency.h"

/* The answer to the message latency show: for each of @nr phases a line, its name and what was measured. */
static inline int latencies_print(const struct latency __percpu *latencies, const char * const *names, u32 nr,
				  char *result, unsigned int maxlen)
{
	unsigned int sz = 0;
	u32 i;

	for (i = 0; i < nr; i++) {
		DMEMIT("%s%s ", i ? "\n" : "", names[i]);
		sz += latency_print(&latencies[i], result + sz, maxlen - sz);
	}
	return 1;	/* device-mapper: there is a result */
}

#endif

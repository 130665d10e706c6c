// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs an operation with a power cut at every point: no state may be wrong.
 *
 * Then leaves out each fence, flush and copy past the caches of the operation in turn. A power cut must now
 * leave a wrong state, or the step is not needed. Tests that don't notice an omission prove nothing, and
 * steps that aren't needed cost time.
 */
#include <stdio.h>

#include "sabotage.h"
#include "test.h"

#define SABOTAGE_SAMPLES	100

static const char *const domain_names[] = { "memory controller", "CPU cache" };

/* In both domains; reports how many states there were. */
void cut_everywhere(const struct operation *operation)
{
	for (u32 domain = SIM_MEM_CTRL; domain <= SIM_CPU_CACHE; domain++) {
		u64 states = sim_states(), sampled = sim_sampled();
		const char *wrong;

		sim_seed(1);
		wrong = operation->explore(operation->scenario, domain, SIM_THOROUGH, SIM_NONE, 0);
		printf("%s: %s, %s: %llu states%s\n", operation->group, operation->name, domain_names[domain],
		       sim_states() - states, sim_sampled() > sampled ? " (sampled)" : "");
		if (!EXPECT(!wrong))
			printf("\t%s\n", wrong);
	}
}

/* Returns how many steps of one kind can be left out without a wrong state. */
static u32 sabotage(const struct operation *operation, enum sim_domain domain, enum sim_sabotage what)
{
	static const char *const names[] = { "", "fence", "flush", "copy past the caches" };
	u32 spared = 0;

	for (u32 nth = 0;; nth++) {
		const char *wrong;

		sim_seed(1);
		wrong = operation->explore(operation->scenario, domain, SABOTAGE_SAMPLES, what, nth);
		if (!sim_sabotage_reached())
			return spared;
		if (!sim_sabotaged())
			continue;
		if (!wrong)
			spared++;
		if (!wrong && !operation->spared)
			printf("\t%s, %s: no test misses %s %u\n", operation->name, domain_names[domain],
			       names[what], nth);
	}
}

void sabotage_all_steps(const struct operation *operation)
{
	u32 spared = sabotage(operation, SIM_MEM_CTRL, SIM_NO_FENCE) +
		     sabotage(operation, SIM_MEM_CTRL, SIM_NO_FLUSH) +
		     sabotage(operation, SIM_MEM_CTRL, SIM_CACHED) +
		     sabotage(operation, SIM_CPU_CACHE, SIM_NO_FENCE);

	if (!EXPECT(spared == operation->spared))
		printf("\t%s: no test missed %u steps\n", operation->name, spared);
}

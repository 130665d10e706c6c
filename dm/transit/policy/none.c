// SPDX-License-Identifier: GPL-2.0-only
/* No cache: measures what the target itself costs. */
#include "../policy.h"

const struct dtc_policy dtc_policy_none = {
	.name = "none",
	.no_cache = true,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the text of core/latency.h: nanoseconds in all, and bins "<N:C". C times it took less than N ns, and
 * at least half of N.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "latency.h"

/* Adds [N, C] for each bin "<N:C"; returns the sum of all C. */
static uint64_t take_bins(const char *text, json_object *bins)
{
	unsigned long long limit, count, all = 0;

	while ((text = strstr(text, " <")) && sscanf(text, " <%llu:%llu", &limit, &count) == 2) {
		json_object *bin = json_object_new_array();

		json_object_array_add(bin, json_object_new_uint64(limit));
		json_object_array_add(bin, json_object_new_uint64(count));
		json_object_array_add(bins, bin);
		all += count;
		text++;
	}
	return all;
}

/**
 * latency_add - add ns, count and bins to an object
 * @json: the object
 * @text: as the kernel prints it; empty if nothing was measured
 */
void latency_add(json_object *json, const char *text)
{
	json_object *bins = json_object_new_array();

	json_add_number(json, "ns", strtoull(text, NULL, 10));
	json_add_number(json, "count", take_bins(text, bins));
	json_object_object_add(json, "bins", bins);
}

/**
 * latency_bins - add counts to those of other latencies, or subtract them
 * @json: the latency
 * @sign: 1 or -1
 * @bins: the count for each limit, by the limit's binary logarithm
 */
void latency_bins(json_object *json, int sign, uint64_t bins[64])
{
	json_object *list = json_object_object_get(json, "bins"), *bin;
	uint64_t limit;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		bin = json_object_array_get_idx(list, i);
		limit = json_object_get_uint64(json_object_array_get_idx(bin, 0));
		if (limit)
			bins[__builtin_ctzll(limit)] +=
				sign * json_object_get_uint64(json_object_array_get_idx(bin, 1));
	}
}

/**
 * latency_percentile - the limit of the bin that the percentile falls into
 * @json: with a count that isn't 0
 * @percent: of all
 *
 * Return: nanoseconds.
 */
uint64_t latency_percentile(json_object *json, unsigned int percent)
{
	json_object *bins = json_object_object_get(json, "bins");
	uint64_t rank = (json_number(json, "count") * percent + 99) / 100, seen = 0;
	size_t n = json_object_array_length(bins), i = 0;
	json_object *bin;

	do {
		bin = json_object_array_get_idx(bins, i++);
		seen += json_object_get_uint64(json_object_array_get_idx(bin, 1));
	} while (seen < rank && i < n);
	return json_object_get_uint64(json_object_array_get_idx(bin, 0));
}

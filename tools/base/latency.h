/* SPDX-License-Identifier: GPL-2.0-only */
/* Latencies as the modules tell them, as JSON: an object with ns, count, and bins of [limit in ns, count]. */
#ifndef FOREBAY_TOOLS_LATENCY_H
#define FOREBAY_TOOLS_LATENCY_H

#include <json-c/json.h>
#include <stdint.h>

void latency_add(struct json_object *json, const char *text);
void latency_bins(struct json_object *json, int sign, uint64_t bins[64]);
uint64_t latency_percentile(struct json_object *json, unsigned int percent);

#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells the model of forebay advise of writes and sync calls, a line each on standard input, and prints what
 * it found as JSON.
 *
 *	w FILE FIRST LAST
 *	s FILE SECONDS
 */
#include <stdio.h>
#include <string.h>

#include "../../tools/advise/model.h"

static void print(const struct model *model)
{
	struct model_result result;

	model_result(model, &result);
	printf("{\"calls\": %lu, \"empty\": %lu, \"files\": %lu, \"pages\": %lu, \"distinct\": %lu, ", result.calls,
	       result.empty_calls, result.files, result.pages, result.distinct);
	printf("\"largest\": %lu, \"busiest\": %lu, \"again\": [", result.largest, result.busiest);
	for (int i = 0; i < MODEL_SIZES; i++)
		printf("%lu%s", result.again[i], i < MODEL_SIZES - 1 ? ", " : "], \"full\": [");
	for (int i = 0; i < MODEL_SIZES; i++)
		printf("%g%s", result.full[i], i < MODEL_SIZES - 1 ? ", " : "]}\n");
}

int main(void)
{
	unsigned long file, first, last, pages;
	struct model *model = model_new();
	char line[100];
	double seconds;

	while (model && fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "w %lu %lu %lu", &file, &first, &last) == 3) {
			if (!model_write(model, file, first, last))
				return 1;
		} else if (sscanf(line, "s %lu %lf", &file, &seconds) != 2 || !model_sync(model, file, seconds, &pages)) {
			return 1;
		}
	}
	if (!model)
		return 1;
	print(model);
	model_free(model);
	return 0;
}

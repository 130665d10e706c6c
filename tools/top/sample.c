// SPDX-License-Identifier: GPL-2.0-only
/* Takes samples of everything that is in use, and finds an object of one in another. */
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "sample.h"

/**
 * sample_take - gather all counters
 * @sample: filled in; sample_free() frees it, also after a failure
 *
 * Return: false, after a message, if something couldn't be read.
 */
bool sample_take(struct sample *sample)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sample->when = now.tv_sec + now.tv_nsec / 1e9;
	return gather_groups(sample->groups);
}

void sample_free(struct sample *sample)
{
	for (int i = 0; i < NR_GROUPS; i++)
		json_object_put(sample->groups[i]);
	*sample = (struct sample){ };
}

/* What tells an object from others of its group. */
static const char *identity(json_object *one)
{
	return json_text(one, "name") ?: json_text(one, "device");
}

/**
 * sample_change - an object now, and the same object before
 * @now: a sample
 * @before: an earlier one; without groups there is none
 * @group: where the object is
 * @nr: which one it is in @now
 *
 * Return: both; they live as long as the samples.
 */
struct change sample_change(const struct sample *now, const struct sample *before, enum group group,
			    size_t nr)
{
	json_object *others = before->groups[group], *one;
	size_t n = others ? json_object_array_length(others) : 0;
	struct change change = {
		.now = json_object_array_get_idx(now->groups[group], nr),
		.seconds = now->when - before->when,
	};

	for (size_t i = 0; i < n; i++) {
		one = json_object_array_get_idx(others, i);
		if (!strcmp(identity(one), identity(change.now)))
			change.before = one;
	}
	return change;
}

/**
 * change_of - by how much a counter grew
 * @change: the object
 * @key: the counter
 * @difference: what was added
 *
 * Return: false if that isn't known: the object is new, or was made again since.
 */
bool change_of(const struct change *change, const char *key, uint64_t *difference)
{
	uint64_t now = json_number(change->now, key);
	uint64_t before = change->before ? json_number(change->before, key) : 0;

	*difference = now - before;
	return change->before && now >= before;
}

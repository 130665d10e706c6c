// SPDX-License-Identifier: GPL-2.0-only
/* Options: set in the table line, most of them later by message, too. */
#include <linux/hex.h>

#include "writelog.h"
#include "../options.h"

struct dwl_number {
	const char *key;
	size_t offset;
	u32 min, max;
	bool later;			/* may be set by message */
	bool once;			/* one-time option: not part of the table line in the status */
};

#define DWL_NUMBER(key, min, max, later) \
	{ #key, offsetof(struct dwl_params, key), min, max, later }

static const struct dwl_number dwl_numbers[] = {
	DWL_NUMBER(slots, 1, 256, false),
	DWL_NUMBER(block_size, 512, PAGE_SIZE, false),
	DWL_NUMBER(high_mark, 1, 99, true),
	DWL_NUMBER(low_mark, 0, 98, true),
	DWL_NUMBER(depth, 1, 256, true),
	DWL_NUMBER(error_timeout, 0, 86400, true),
	DWL_NUMBER(allow_volatile, 0, 1, false),
	{ "any_origin", offsetof(struct dwl_params, any_origin), 0, 1, .once = true },
};

static u32 *dwl_number_at(struct dwl *w, const struct dwl_number *number)
{
	return (void *)&w->params + number->offset;
}

static int dwl_set_number(struct dwl *w, const char *key, const char *value, bool later)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dwl_numbers); i++) {
		const struct dwl_number *number = &dwl_numbers[i];
		u32 n;

		if (strcmp(key, number->key))
			continue;
		if (later && !number->later)
			return -EPERM;
		if (kstrtou32(value, 10, &n) || n < number->min || n > number->max)
			return -ERANGE;
		WRITE_ONCE(*dwl_number_at(w, number), n);
		if (!number->once)
			w->params.given |= 1 << i;
		return 0;
	}
	return -ENOENT;
}

static int dwl_set_origin_id(struct dwl *w, const char *value)
{
	size_t digits = strlen(value);

	if (!digits || digits % 2 || digits > 2 * WL_ORIGIN_ID_SIZE ||
	    hex2bin(w->params.origin_id, value, digits / 2))
		return -ERANGE;
	w->params.has_origin_id = true;
	return 0;
}

static int dwl_set_choice(struct dwl *w, const char *key, const char *value, bool later)
{
	if (strcmp(key, "on_damage"))
		return -ENOENT;
	if (later)
		return -EPERM;
	if (strcmp(value, "stop") && strcmp(value, "skip"))
		return -ERANGE;
	w->params.skip_damage = !strcmp(value, "skip");
	return 0;
}

static int dwl_set(void *target, const char *key, const char *value, bool later)
{
	struct dwl *w = target;
	int err = dwl_set_number(w, key, value, later);

	if (err == -ENOENT)
		err = dwl_set_choice(w, key, value, later);
	if (err == -ENOENT && !strcmp(key, "origin_id"))
		err = later ? -EPERM : dwl_set_origin_id(w, value);
	return err;
}

static void dwl_defaults(struct dwl *w)
{
	struct dwl_params *p = &w->params;

	/* More concurrent writers make the medium slower (thesis 2.2, 5.2.1). */
	p->slots = clamp(num_online_cpus(), 2, 16);
	p->block_size = bdev_logical_block_size(w->origin->bdev);
	p->high_mark = 60;
	p->low_mark = 40;
	p->depth = 16;
	p->error_timeout = 60;
}

/**
 * dwl_params_parse() - parse the options of the table line
 * @w: the target; its devices are open
 * @argc: number of words after the devices: 0, or 1 + the number that argv[0] gives
 * @argv: these words
 *
 * Context: Constructor.
 * Return: 0 or a negative errno with ti->error set.
 */
int dwl_params_parse(struct dwl *w, unsigned int argc, char **argv)
{
	int err;

	dwl_defaults(w);
	err = options_parse(w->ti, argc, argv, dwl_set, w);
	if (err)
		return err;
	if (!is_power_of_2(w->params.block_size) ||
	    w->params.block_size < bdev_logical_block_size(w->origin->bdev)) {
		w->ti->error = "block_size must be a power of 2, and the origin's block size or more";
		return -EINVAL;
	}
	/* Linux 6.15 has disks with larger blocks. Pages of the worker take one block each. */
	if (w->params.block_size > PAGE_SIZE) {
		w->ti->error = "The origin has blocks larger than a page";
		return -EINVAL;
	}
	if (w->params.low_mark >= w->params.high_mark) {
		w->ti->error = "low_mark must be below high_mark";
		return -EINVAL;
	}
	w->block_shift = ilog2(w->params.block_size) - SECTOR_SHIFT;
	return 0;
}

/* Message set KEY VALUE. */
int dwl_params_set(struct dwl *w, const char *key, const char *value)
{
	u32 high = w->params.high_mark, low = w->params.low_mark;
	int err = dwl_set(w, key, value, true);
	const char *why = option_error(err);

	if (!err && w->params.low_mark >= w->params.high_mark) {
		w->params.high_mark = high;
		w->params.low_mark = low;
		err = -ERANGE;
		why = "low_mark must be below high_mark";
	}
	if (err)
		DMERR("%s: set %s %s: %s", dm_table_device_name(w->ti->table), key, value, why);
	else
		wake_up(&w->kick);
	return err == -ENOENT ? -EINVAL : err;
}

/* Prints the options as the table line has them. */
void dwl_params_print(struct dwl *w, char *result, unsigned int maxlen, unsigned int *len)
{
	unsigned int sz = *len, words = 2 * (hweight8(w->params.given) + w->params.skip_damage +
					     w->params.has_origin_id);
	size_t i;

	if (words)
		DMEMIT(" %u", words);
	for (i = 0; i < ARRAY_SIZE(dwl_numbers); i++)
		if (w->params.given & 1 << i)
			DMEMIT(" %s %u", dwl_numbers[i].key, *dwl_number_at(w, &dwl_numbers[i]));
	if (w->params.skip_damage)
		DMEMIT(" on_damage skip");
	if (w->params.has_origin_id)
		DMEMIT(" origin_id %*phN", WL_ORIGIN_ID_SIZE, w->params.origin_id);
	*len = sz;
}

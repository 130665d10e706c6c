// SPDX-License-Identifier: GPL-2.0-only
/* Options: set in the table line, some of them later by message. */
#include "policy.h"
#include "../options.h"

static const struct dtc_policy * const dtc_policies[] = {
	&dtc_policy_transit,	/* the default */
	&dtc_policy_pmbd,
	&dtc_policy_pmbd70,
	&dtc_policy_lru,
	&dtc_policy_coactive,
	&dtc_policy_none,
};

/* Paper 5 uses 512 MiB; the limit is a 16th of a small machine's memory. */
#define DTC_CACHE_DEFAULT	(512ULL << 20)

static int dtc_parse_flag(bool *flag, const char *value)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return -ERANGE;
	WRITE_ONCE(*flag, !strcmp(value, "on"));
	return 0;
}

static int dtc_option_cache_size(struct dtc *t, const char *value, bool later)
{
	char *end;
	u64 size = memparse(value, &end);

	if (*end || !size || size > (u64)totalram_pages() << PAGE_SHIFT >> 1)
		return -ERANGE;
	t->params.cache_size = size;
	return 0;
}

static int dtc_option_block_size(struct dtc *t, const char *value, bool later)
{
	u32 size;

	if (kstrtou32(value, 10, &size) || size < 512 || size > PAGE_SIZE || !is_power_of_2(size))
		return -ERANGE;
	t->params.block_size = size;
	return 0;
}

static int dtc_option_workers(struct dtc *t, const char *value, bool later)
{
	u32 workers;

	if (kstrtou32(value, 10, &workers) || !workers || workers > DTC_MAX_WORKERS)
		return -ERANGE;
	WRITE_ONCE(t->params.workers, workers);
	return 0;
}

static int dtc_option_policy(struct dtc *t, const char *value, bool later)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dtc_policies); i++) {
		if (!strcmp(value, dtc_policies[i]->name)) {
			t->policy = dtc_policies[i];
			return 0;
		}
	}
	return -ERANGE;
}

static int dtc_option_eager_eviction(struct dtc *t, const char *value, bool later)
{
	int err = dtc_parse_flag(&t->params.eager_eviction, value);

	/*
	 * Blocks cached so far were not wanted. Barrier: a writer that adds to a set found empty below
	 * sees the new option.
	 */
	smp_mb();
	if (!err && later && t->params.eager_eviction)
		dtc_want_all(t);
	return err;
}

static int dtc_option_bypass(struct dtc *t, const char *value, bool later)
{
	return dtc_parse_flag(&t->params.bypass, value);
}

struct dtc_option {
	const char *name;
	bool later;			/* may be set by message */
	int (*set)(struct dtc *t, const char *value, bool later);
};

enum {
	DTC_OPTION_CACHE_SIZE, DTC_OPTION_BLOCK_SIZE, DTC_OPTION_WORKERS, DTC_OPTION_POLICY, DTC_OPTION_EAGER,
	DTC_OPTION_BYPASS,
};

static const struct dtc_option dtc_options[] = {
	[DTC_OPTION_CACHE_SIZE] = { "cache_size", false, dtc_option_cache_size },
	[DTC_OPTION_BLOCK_SIZE] = { "block_size", false, dtc_option_block_size },
	[DTC_OPTION_WORKERS] = { "workers", true, dtc_option_workers },
	[DTC_OPTION_POLICY] = { "policy", false, dtc_option_policy },
	[DTC_OPTION_EAGER] = { "eager_eviction", true, dtc_option_eager_eviction },
	[DTC_OPTION_BYPASS] = { "bypass", true, dtc_option_bypass },
};

static int dtc_set_option(void *target, const char *key, const char *value, bool later)
{
	struct dtc *t = target;
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(dtc_options); i++) {
		if (strcmp(key, dtc_options[i].name))
			continue;
		if (later && !dtc_options[i].later)
			return -EPERM;
		err = dtc_options[i].set(t, value, later);
		if (!err)
			t->params.given |= 1 << i;
		return err;
	}
	return -ENOENT;
}

static void dtc_defaults(struct dtc *t)
{
	struct dtc_params *p = &t->params;

	p->cache_size = min(DTC_CACHE_DEFAULT, (u64)totalram_pages() << PAGE_SHIFT >> 4);
	/* An NVMe device may report any multiple of its logical block size. */
	p->block_size = rounddown_pow_of_two(clamp(bdev_physical_block_size(t->lower->bdev), 512, PAGE_SIZE));
	p->workers = min_t(u32, num_online_cpus(), DTC_MAX_WORKERS);
	p->eager_eviction = true;
	p->bypass = true;
	t->policy = dtc_policies[0];
}

static int dtc_params_check(struct dtc *t)
{
	struct dtc_params *p = &t->params;

	if (p->block_size < bdev_logical_block_size(t->lower->bdev)) {
		t->ti->error = "block_size must be the device's block size or more";
		return -EINVAL;
	}
	if (p->cache_size / p->block_size >= DTC_NO_SLOT || p->cache_size < p->block_size) {
		t->ti->error = "cache_size must be a block or more, and less than 2^32 blocks";
		return -EINVAL;
	}
	t->block_shift = ilog2(p->block_size) - SECTOR_SHIFT;
	t->nr_slots = t->policy->no_cache ? 0 : div_u64(p->cache_size, p->block_size);
	return 0;
}

/**
 * dtc_params_parse() - parse the options of the table line
 * @t: the target; its device is open
 * @argc: number of words after the device: 0, or 1 + the number that argv[0] gives
 * @argv: these words
 *
 * Context: Constructor.
 * Return: 0 or a negative errno with ti->error set.
 */
int dtc_params_parse(struct dtc *t, unsigned int argc, char **argv)
{
	int err;

	dtc_defaults(t);
	err = options_parse(t->ti, argc, argv, dtc_set_option, t);
	return err ? err : dtc_params_check(t);
}

/* Message set KEY VALUE. */
int dtc_params_set(struct dtc *t, const char *key, const char *value)
{
	int err = dtc_set_option(t, key, value, true);

	if (err)
		DMERR("%s: set %s %s: %s", dm_table_device_name(t->ti->table), key, value, option_error(err));
	return err == -ENOENT ? -EINVAL : err;
}

static const char *dtc_flag(bool flag)
{
	return flag ? "on" : "off";
}

/* Prints the options as the table line has them. */
void dtc_params_print(struct dtc *t, char *result, unsigned int maxlen, unsigned int *len)
{
	const struct dtc_params *p = &t->params;
	unsigned int sz = *len;

	if (p->given)
		DMEMIT(" %u", 2 * hweight8(p->given));
	if (p->given & 1 << DTC_OPTION_CACHE_SIZE)
		DMEMIT(" cache_size %llu", p->cache_size);
	if (p->given & 1 << DTC_OPTION_BLOCK_SIZE)
		DMEMIT(" block_size %u", p->block_size);
	if (p->given & 1 << DTC_OPTION_WORKERS)
		DMEMIT(" workers %u", p->workers);
	if (p->given & 1 << DTC_OPTION_POLICY)
		DMEMIT(" policy %s", t->policy->name);
	if (p->given & 1 << DTC_OPTION_EAGER)
		DMEMIT(" eager_eviction %s", dtc_flag(p->eager_eviction));
	if (p->given & 1 << DTC_OPTION_BYPASS)
		DMEMIT(" bypass %s", dtc_flag(p->bypass));
	*len = sz;
}

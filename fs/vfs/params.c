// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mount options are parsed here, and nothing else is done with them.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>

#include "../fail.h"
#include "../page/alloc.h"
#include "params.h"

enum { FB_OPT_CACHE, FB_OPT_MODE, FB_OPT_PIN_LIMIT, FB_OPT_PIN_LIMIT_USER, FB_OPT_ALLOW_VOLATILE_CACHE,
	FB_OPT_ZERO_FREED, FB_OPT_NAMES, FB_OPT_WRITEBACK_AGE, FB_OPT_COPY_LIMIT, FB_OPT_COPY_LIMIT_USER,
	FB_OPT_COPY_TASKS };

#define FB_AGE_DEFAULT	30
#define FB_AGE_MAX	86400
#define FB_COPY_LIMIT_MIN	SZ_64K
#define FB_COPY_TASKS_MAX	1024

/* What becomes of a name log that a crash left. */
enum { FB_NAMES_REPLAY, FB_NAMES_DISCARD };

static const struct constant_table fb_modes[] = {
	{ "auto", FB_MODE_AUTO },
	{ "explicit", FB_MODE_EXPLICIT },
	{}
};

static const struct constant_table fb_names_actions[] = {
	{ "replay", FB_NAMES_REPLAY },
	{ "discard", FB_NAMES_DISCARD },
	{}
};

const struct fs_parameter_spec fb_parameters[] = {
	fsparam_string("cache", FB_OPT_CACHE),
	fsparam_string("mode", FB_OPT_MODE),
	fsparam_string("pin_limit", FB_OPT_PIN_LIMIT),
	fsparam_string("pin_limit_user", FB_OPT_PIN_LIMIT_USER),
	fsparam_flag("allow_volatile_cache", FB_OPT_ALLOW_VOLATILE_CACHE),
	fsparam_flag("zero_freed", FB_OPT_ZERO_FREED),
	fsparam_string("names", FB_OPT_NAMES),
	fsparam_u32("writeback_age", FB_OPT_WRITEBACK_AGE),
	fsparam_string("copy_limit", FB_OPT_COPY_LIMIT),
	fsparam_string("copy_limit_user", FB_OPT_COPY_LIMIT_USER),
	fsparam_u32("copy_tasks", FB_OPT_COPY_TASKS),
	{}
};

/**
 * fb_mode_name() - as the option is spelt
 * @mode: the mode
 */
const char *fb_mode_name(enum fb_mode mode)
{
	return fb_modes[mode].name;
}

/*
 * One of the two names of @table: its value, or -EINVAL after a message. With fsparam_enum() the kernel would
 * say only that the value is bad.
 */
static int fb_parse_choice(struct fs_context *fc, struct fs_parameter *param,
			   const struct constant_table *table)
{
	int value = lookup_constant(table, param->string, -EINVAL);

	if (value < 0)
		return invalf(fc, "forebay: %s=%s is neither %s nor %s", param->key, param->string,
			      table[0].name, table[1].name);
	return value;
}

/* A number of bytes, with k, m, g behind it or not. */
static int fb_parse_size(struct fs_context *fc, struct fs_parameter *param, u64 *size)
{
	char *end;

	*size = memparse(param->string, &end);
	if (*end || end == param->string || *size == FB_NO_LIMIT)
		return invalf(fc, "forebay: %s=%s is no size; 64M is one", param->key, param->string);
	return 0;
}

/* The same of bytes a second; 0 is no limit. */
static int fb_parse_rate(struct fs_context *fc, struct fs_parameter *param, u64 *rate)
{
	int err = fb_parse_size(fc, param, rate);

	if (!err && *rate && *rate < FB_COPY_LIMIT_MIN)
		return invalf(fc, "forebay: %s=%s is less than %u bytes a second; 0 is no limit",
			      param->key, param->string, FB_COPY_LIMIT_MIN);
	return err;
}

/**
 * fb_parse_param() - one mount option
 * @fc: of a mount or a remount; fs_private has the options
 * @param: the option
 *
 * Return: 0 or a negative errno, after a message.
 */
int fb_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct fb_options *opt = fc->fs_private;
	struct fs_parse_result result;
	int token = fs_parse(fc, fb_parameters, param, &result), value;

	switch (token) {
	case FB_OPT_CACHE:
		kfree(opt->cache);
		opt->cache = param->string;
		param->string = NULL;
		return 0;
	case FB_OPT_MODE:
		value = fb_parse_choice(fc, param, fb_modes);
		if (value < 0)
			return value;
		opt->mode = value;
		return 0;
	case FB_OPT_PIN_LIMIT:
		return fb_parse_size(fc, param, &opt->pin_limit);
	case FB_OPT_PIN_LIMIT_USER:
		return fb_parse_size(fc, param, &opt->pin_limit_user);
	case FB_OPT_COPY_LIMIT:
		return fb_parse_rate(fc, param, &opt->copy_limits.all);
	case FB_OPT_COPY_LIMIT_USER:
		return fb_parse_rate(fc, param, &opt->copy_limits.user);
	case FB_OPT_COPY_TASKS:
		opt->copy_limits.tasks = result.uint_32;
		if (opt->copy_limits.tasks > FB_COPY_TASKS_MAX)
			return invalf(fc, "forebay: copy_tasks=%s is more than %u; 0 is no bound",
				      param->string, FB_COPY_TASKS_MAX);
		return 0;
	case FB_OPT_ALLOW_VOLATILE_CACHE:
		opt->allow_volatile_cache = true;
		return 0;
	case FB_OPT_ZERO_FREED:
		opt->zero_freed = true;
		return 0;
	case FB_OPT_NAMES:
		value = fb_parse_choice(fc, param, fb_names_actions);
		if (value < 0)
			return value;
		opt->names_discard = value == FB_NAMES_DISCARD;
		return 0;
	case FB_OPT_WRITEBACK_AGE:
		opt->writeback_age = result.uint_32;
		if (opt->writeback_age > FB_AGE_MAX)
			return invalf(fc, "forebay: writeback_age=%s is more than a day, %u seconds; 0 switches it off",
				      param->string, FB_AGE_MAX);
		return 0;
	default:
		return token;
	}
}

/**
 * fb_set_pin_limits() - how many pages may be pinned from now on
 * @fsb: the mount, its cache open
 * @fc: with options, which may leave limits as they are
 *
 * By default half of the cache, and a quarter of it for one user. What is pinned stays so.
 *
 * Return: 0; -EINVAL if a limit is more than there is.
 */
int fb_set_pin_limits(struct fb_sb *fsb, struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;
	u64 size = (u64)fsb->ps.nr_pages << PAGE_SHIFT;

	if ((opt->pin_limit != FB_NO_LIMIT && opt->pin_limit > size) ||
	    (opt->pin_limit_user != FB_NO_LIMIT && opt->pin_limit_user > size))
		return fb_fail(fc, -EINVAL, "no more than %llu KiB can be pinned: the cache has no more",
			       size >> 10);
	spin_lock(&fsb->pins.lock);
	if (opt->pin_limit != FB_NO_LIMIT)
		fsb->pins.max = opt->pin_limit >> PAGE_SHIFT;
	else if (fc->purpose == FS_CONTEXT_FOR_MOUNT)
		fsb->pins.max = fsb->ps.nr_pages / 2;
	if (opt->pin_limit_user != FB_NO_LIMIT)
		fsb->pins.max_of_user = opt->pin_limit_user >> PAGE_SHIFT;
	else if (fc->purpose == FS_CONTEXT_FOR_MOUNT)
		fsb->pins.max_of_user = fsb->ps.nr_pages / 4;
	spin_unlock(&fsb->pins.lock);
	return 0;
}

/**
 * fb_set_writeback_age() - when pages are written back without need
 * @fsb: the mount
 * @fc: with options, which may leave it as it is
 */
void fb_set_writeback_age(struct fb_sb *fsb, struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;

	if (opt->writeback_age != FB_AGE_AS_IS)
		WRITE_ONCE(fsb->writeback_age, opt->writeback_age);
	else if (fc->purpose == FS_CONTEXT_FOR_MOUNT)
		WRITE_ONCE(fsb->writeback_age, FB_AGE_DEFAULT);
	if (fsb->writeback_age)
		mod_delayed_work(fsb->wq, &fsb->age_work, fb_age_step(fsb->writeback_age));
}

/**
 * fb_alloc_options() - options that ask for nothing
 *
 * Return: the options, or NULL.
 */
struct fb_options *fb_alloc_options(void)
{
	struct fb_options *opt = kzalloc(sizeof(*opt), GFP_KERNEL);

	if (!opt)
		return NULL;
	opt->pin_limit = FB_NO_LIMIT;
	opt->pin_limit_user = FB_NO_LIMIT;
	opt->copy_limits.all = FB_NO_LIMIT;
	opt->copy_limits.user = FB_NO_LIMIT;
	opt->copy_limits.tasks = FB_TASKS_AS_IS;
	opt->writeback_age = FB_AGE_AS_IS;
	return opt;
}

/**
 * fb_free_options() - the options of a mount or a remount are not needed any more
 * @fc: its context
 */
void fb_free_options(struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;

	kfree(opt->cache);
	kfree(opt);
}

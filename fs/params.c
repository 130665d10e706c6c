// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mount options are parsed here, and nothing else is done with them.
 */
#include <linux/slab.h>

#include "super.h"

enum { FB_OPT_CACHE, FB_OPT_MODE };

static const struct constant_table fb_modes[] = {
	{ "auto", FB_MODE_AUTO },
	{ "explicit", FB_MODE_EXPLICIT },
	{}
};

const struct fs_parameter_spec fb_parameters[] = {
	fsparam_string("cache", FB_OPT_CACHE),
	fsparam_enum("mode", FB_OPT_MODE, fb_modes),
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

static int fb_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct fb_options *opt = fc->fs_private;
	struct fs_parse_result result;
	int token = fs_parse(fc, fb_parameters, param, &result);

	switch (token) {
	case FB_OPT_CACHE:
		kfree(opt->cache);
		opt->cache = param->string;
		param->string = NULL;
		return 0;
	case FB_OPT_MODE:
		opt->mode = result.uint_32;
		return 0;
	default:
		return token;
	}
}

static int fb_reconfigure(struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;
	struct fb_sb *fsb = FB_SB(fc->root->d_sb);

	if (opt->cache && strcmp(opt->cache, fsb->cache_path))
		return fb_fail(fc, -EINVAL, "the cache of a mount can't be changed: unmount and mount again");
	sync_filesystem(fc->root->d_sb);
	WRITE_ONCE(fsb->mode, opt->mode);
	return 0;
}

static void fb_free_options(struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;

	kfree(opt->cache);
	kfree(opt);
}

static const struct fs_context_operations fb_context_operations = {
	.parse_param	= fb_parse_param,
	.get_tree	= fb_get_tree,
	.reconfigure	= fb_reconfigure,
	.free		= fb_free_options,
};

/**
 * fb_init_fs_context() - begin a mount or a remount
 * @fc: its context
 *
 * Return: 0 or -ENOMEM.
 */
int fb_init_fs_context(struct fs_context *fc)
{
	struct fb_options *opt = kzalloc(sizeof(*opt), GFP_KERNEL);

	if (!opt)
		return -ENOMEM;
	if (fc->purpose == FS_CONTEXT_FOR_RECONFIGURE)
		opt->mode = FB_SB(fc->root->d_sb)->mode;
	fc->fs_private = opt;
	fc->ops = &fb_context_operations;
	return 0;
}

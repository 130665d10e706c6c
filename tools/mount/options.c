// SPDX-License-Identifier: GPL-2.0-only
/*
 * The options of a mount, sorted by what handles them. These are mount(8) and systemd (x-…, nofail,
 * _netdev, …), the kernel for any file system (ro, nosuid, …), and forebay. libmount has the lists.
 */
#include <libmount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "options.h"
#include "say.h"

#define ATIME_FLAGS	(MS_NOATIME | MS_RELATIME | MS_STRICTATIME | MS_NODIRATIME)

/**
 * options_parse - sort the options of a command line
 * @options: filled in; the caller calls options_free() even after a failure
 * @text: "name,name=value"; a value in double quotes may contain commas
 *
 * Return: false, after a message, if they can't be read.
 */
bool options_parse(struct options *options, const char *text)
{
	char *generic = NULL;
	int err;

	*options = (struct options){ .all = strdup(text) };
	err = mnt_split_optstr(text, NULL, &generic, &options->own, 0, 0);
	if (!err && generic)
		err = mnt_optstr_get_flags(generic, &options->flags, mnt_get_builtin_optmap(MNT_LINUX_MAP));
	free(generic);
	options->explicit_atime = options->flags & ATIME_FLAGS;
	if (err || !options->all)
		say("cannot read the options: %s", text);
	return !err && options->all;
}

/* Copies a name or value, which has no terminating zero; drops the quotes around a value. */
static char *copy(const char *text, size_t len)
{
	if (len >= 2 && text[0] == '"' && text[len - 1] == '"')
		return strndup(text + 1, len - 2);
	return strndup(text, len);
}

/**
 * options_each - call a function for every option for forebay
 * @options: from options_parse()
 * @fn: called with each; ends the walk when it returns false
 * @arg: passed to @fn
 *
 * Return: false if @fn did.
 */
bool options_each(const struct options *options, option_fn fn, void *arg)
{
	char *rest = options->own, *name, *value;
	size_t name_len, value_len;
	bool good = true;

	while (good && rest && !mnt_optstr_next_option(&rest, &name, &name_len, &value, &value_len)) {
		char *own_name = copy(name, name_len), *own_value = value ? copy(value, value_len) : NULL;

		good = own_name && (own_value || !value) && fn(arg, own_name, own_value);
		free(own_name);
		free(own_value);
	}
	return good;
}

/**
 * options_free - release what options_parse() made
 * @options: from there
 */
void options_free(struct options *options)
{
	free(options->own);
	free(options->all);
}

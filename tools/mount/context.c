// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mounts and remounts by a file system context: fsopen(2), fsconfig(2), fsmount(2), move_mount(2).
 *
 * The kernel and the module log messages to the context. They are read from its file descriptor: "e text"
 * (an error), "w text" (a warning) or "i text". If a call fails without a message, its errno is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "sys/release.h"
#include "sys/rights.h"
#include "cache.h"
#include "context.h"
#include "say.h"

/* The longest value that fsconfig() takes, with its terminating zero. */
#define VALUE_MAX	256

#define LINE_MAX_BYTES	4096

/* Messages begin with "forebay: " for the kernel's log; here the program's name precedes them. */
static const char *without_name(const char *text)
{
	static const char name[] = "forebay: ";

	return strncmp(text, name, strlen(name)) ? text : text + strlen(name);
}

/* The kernel refuses names and values of options in words of its own, which tell no good ones. */
static bool is_about_option(const char *text)
{
	return strstr(text, "Unknown parameter") || strstr(text, "Bad value for") ||
	       strstr(text, "Unexpected value for");
}

/* Prints the messages of the context, and returns whether one was an error. */
static bool say_log(const struct context *context)
{
	char line[LINE_MAX_BYTES];
	bool error = false;
	ssize_t len;

	while ((len = read(context->fd, line, sizeof(line) - 1)) > 0) {
		if (line[len - 1] == '\n')
			len--;
		line[len] = '\0';
		if (*line != 'i' || context->verbose)
			say("%s%s", without_name(len > 2 ? line + 2 : line),
			    is_about_option(line) ? ": forebay(5) has the options and their values" : "");
		error = error || *line == 'e';
	}
	return error;
}

/* After a failed call: prints its messages, or @what and errno. */
static bool fail(const struct context *context, const char *what)
{
	int err = errno;

	if (!say_log(context))
		say("%s: %s", what, strerror(err));
	return false;
}

static bool say_no_context(void)
{
	char text[ADVICE_TEXT];
	int err = errno;

	if (err == ENODEV)
		say("the kernel has no file system forebay. %s", module_advice("forebay", text));
	else if (err == EPERM)
		say("the kernel refuses a mount. %s", rights_advice());
	else
		say("cannot begin a mount: %s", strerror(err));
	return false;
}

/**
 * context_new - begin a mount
 * @context: its fd is filled in
 *
 * The kernel loads the module if necessary.
 *
 * Return: false after a message.
 */
bool context_new(struct context *context)
{
	context->fd = fsopen("forebay", FSOPEN_CLOEXEC);
	return context->fd >= 0 || say_no_context();
}

/**
 * context_pick - begin a remount
 * @context: its fd is filled in
 * @target: where it is mounted
 *
 * Return: false after a message.
 */
bool context_pick(struct context *context, const char *target)
{
	context->fd = fspick(AT_FDCWD, target, FSPICK_CLOEXEC | FSPICK_NO_AUTOMOUNT);
	if (context->fd >= 0)
		return true;
	if (errno == EINVAL)
		say("it is not mounted");
	else
		say_no_context();
	return false;
}

/* Returns whether the kernel doesn't know the option; says so, or what else is wrong with it. */
static bool was_unknown(struct context *context)
{
	char line[LINE_MAX_BYTES];
	ssize_t len = read(context->fd, line, sizeof(line) - 1);

	if (len <= 0)
		return false;
	line[len] = '\0';
	if (strstr(line, "Unknown parameter")) {
		if (context->verbose)
			say("left out: %s", without_name(line + 2));
		return true;
	}
	say("%s", without_name(line + 2));
	return false;
}

static bool set(struct context *context, const char *name, const char *value)
{
	if (value && strlen(value) >= VALUE_MAX) {
		say("%s is longer than %d bytes, which mount.forebay cannot pass on: use mount -i",
		    name, VALUE_MAX - 1);
		return false;
	}
	if (!fsconfig(context->fd, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, name, value, 0))
		return true;
	if (context->sloppy && errno == EINVAL)
		return was_unknown(context);
	return fail(context, name);
}

static bool set_option(void *arg, const char *name, const char *value)
{
	char *cache;
	bool good;

	if (strcmp(name, "cache") || !value)
		return set(arg, name, value);
	cache = cache_resolve(value);
	good = cache && set(arg, name, cache);
	free(cache);
	return good;
}

/* Sets the flags of the file system. A remount clears flags that aren't given, as mount(2) does. */
static bool set_flags(struct context *context, unsigned long flags)
{
	static const struct {
		unsigned long flag;
		const char *set, *clear;
	} known[] = {
		{ MS_RDONLY, "ro", "rw" },
		{ MS_SYNCHRONOUS, "sync", "async" },
		{ MS_DIRSYNC, "dirsync", NULL },
		{ 1UL << 25 /* MS_LAZYTIME */, "lazytime", "nolazytime" },
		{ MS_MANDLOCK, "mand", NULL },
	};
	bool good = true;

	/* The kernel refuses it before it asks the module, and says nothing. */
	if (context->remount && flags & MS_DIRSYNC) {
		say("dirsync isn't supported: mount the file system below with it");
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known) && good; i++) {
		if (flags & known[i].flag)
			good = set(context, known[i].set, NULL);
		else if (context->remount && known[i].clear)
			good = set(context, known[i].clear, NULL);
	}
	return good;
}

/**
 * context_configure - pass source, flags and options to the kernel
 * @context: of the mount
 * @lower: the lower directory; NULL for a remount
 * @options: of the mount
 *
 * Return: false after a message.
 */
bool context_configure(struct context *context, const char *lower, const struct options *options)
{
	return (!lower || set(context, "source", lower)) && set_flags(context, options->flags) &&
	       options_each(options, set_option, context);
}

/* The attributes of the mount itself. */
static __u64 attributes(unsigned long flags)
{
	static const struct {
		unsigned long flag;
		__u64 attribute;
	} known[] = {
		{ MS_RDONLY, MOUNT_ATTR_RDONLY },
		{ MS_NOSUID, MOUNT_ATTR_NOSUID },
		{ MS_NODEV, MOUNT_ATTR_NODEV },
		{ MS_NOEXEC, MOUNT_ATTR_NOEXEC },
		{ 1UL << 8 /* MS_NOSYMFOLLOW */, MOUNT_ATTR_NOSYMFOLLOW },
		{ MS_NODIRATIME, MOUNT_ATTR_NODIRATIME },
	};
	__u64 all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (flags & known[i].flag)
			all |= known[i].attribute;
	/* As with mount(2), the strictest of several wins. */
	if (flags & MS_STRICTATIME)
		return all | MOUNT_ATTR_STRICTATIME;
	return flags & MS_NOATIME ? all | MOUNT_ATTR_NOATIME : all;
}

/**
 * context_mount - make the mount
 * @context: configured
 * @target: where
 * @options: of the mount
 *
 * Return: false after a message.
 */
bool context_mount(struct context *context, const char *target, const struct options *options)
{
	bool good;
	int mount;

	if (fsconfig(context->fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return fail(context, "cannot mount");
	mount = fsmount(context->fd, FSMOUNT_CLOEXEC, attributes(options->flags));
	if (mount < 0)
		return fail(context, "cannot mount");
	good = !move_mount(mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
	if (!good)
		fail(context, "cannot mount there");
	else
		say_log(context);
	close(mount);
	return good;
}

/**
 * context_remount - change a mount
 * @context: configured
 * @target: where it is
 * @options: of the mount
 *
 * The mode of access times changes only if an option names one, as with mount(2).
 *
 * Return: false after a message.
 */
bool context_remount(struct context *context, const char *target, const struct options *options)
{
	struct mount_attr attr = {
		.attr_set = attributes(options->flags),
		.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
			    MOUNT_ATTR_NOSYMFOLLOW,
	};

	if (options->explicit_atime)
		attr.attr_clr |= MOUNT_ATTR__ATIME | MOUNT_ATTR_NODIRATIME;
	if (fsconfig(context->fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0))
		return fail(context, "cannot remount");
	say_log(context);
	if (!mount_setattr(AT_FDCWD, target, 0, &attr, sizeof(attr)))
		return true;
	say("cannot change the mount: %s", strerror(errno));
	return false;
}

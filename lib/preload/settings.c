// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads FOREBAY_LOG_PATTERNS, one pattern a line, and FOREBAY_LOG_SIZES, "CHUNK LOW_WATER PRE_ALLOC".
 */
#include "settings.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LENGTH		4096	/* the longest that the command gives */
#define MAX_PATTERNS	(LENGTH / 2)

static char lines[LENGTH];
static char *patterns[MAX_PATTERNS];
static int nr_patterns;
static struct forebay_log_options options = { .size = sizeof(options) };

__attribute__((constructor(101)))
static void read_settings(void)
{
	const char *asked = getenv("FOREBAY_LOG_PATTERNS"), *sizes = getenv("FOREBAY_LOG_SIZES");
	char *rest = lines, *line;

	snprintf(lines, sizeof(lines), "%s", asked ? asked : "");
	while (rest && nr_patterns < MAX_PATTERNS) {
		line = strsep(&rest, "\n");
		if (*line)
			patterns[nr_patterns++] = line;
	}
	if (sizes && sscanf(sizes, "%zu %u %u", &options.chunk, &options.low_water, &options.pre_alloc) != 3)
		settings_say("FOREBAY_LOG_SIZES", "not three numbers");
}

/**
 * settings_match - whether a file is to be a log
 * @path: as the program names it
 *
 * A pattern with a slash is compared with the whole path, others with the last part.
 * Context: any thread.
 * Return: true if a pattern matches.
 */
bool settings_match(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	for (int i = 0; path && i < nr_patterns; i++) {
		bool whole = strchr(patterns[i], '/');

		if (!fnmatch(patterns[i], whole || !slash ? path : slash + 1, whole ? FNM_PATHNAME : 0))
			return true;
	}
	return false;
}

/**
 * settings_options - the sizes that were asked for
 *
 * Context: any thread.
 * Return: options for forebay_log_open().
 */
const struct forebay_log_options *settings_options(void)
{
	return &options;
}

/**
 * settings_match_descriptor - whether an open file is to be a log
 * @fd: any number
 * @path: set to its path, if the descriptor is open
 *
 * Context: any thread.
 * Return: true if a pattern matches the path.
 */
bool settings_match_descriptor(int fd, char path[PATH_MAX])
{
	char name[40];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, path, PATH_MAX - 1);
	if (length < 0)
		return false;
	path[length] = '\0';
	return settings_match(path);
}

/**
 * settings_say - tell the user on standard error; errno stays as it is
 * @path: what it is about
 * @what: what is wrong with it
 *
 * Says nothing if that may be a log: recovery finds nothing in a log that has something else behind its last
 * page.
 * Context: any thread.
 */
void settings_say(const char *path, const char *what)
{
	char text[512], standard_error[PATH_MAX];
	int err = errno;
	int length = snprintf(text, sizeof(text), "forebay log-preload: %s: %s\n", path, what);

	if (length > 0 && !settings_match_descriptor(2, standard_error))
		syscall(SYS_write, 2, text, strlen(text));
	errno = err;
}

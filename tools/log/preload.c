// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay log-preload: runs a command with libforebay-log under its logs.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/size.h"
#include "base/verb.h"
#include "static.h"

#define LIBRARY		"libforebay-log-preload.so"
#define PATTERN		"*.incr.aof"
#define MAX_PATTERNS	4096
#define MAX_AHEAD	(16ULL << 30)	/* of the library, in bytes */

enum { OPT_PATTERN = 1, OPT_CHUNK, OPT_LOW_WATER, OPT_PRE_ALLOC };

static const struct option options[] = {
	{ "pattern", required_argument, NULL, OPT_PATTERN },
	{ "chunk-size", required_argument, NULL, OPT_CHUNK },
	{ "low-water", required_argument, NULL, OPT_LOW_WATER },
	{ "pre-allocate", required_argument, NULL, OPT_PRE_ALLOC },
	OPTION_HELP,
	{ }
};

/* Seen from the command, the library is in ../lib in the build folder, and in ../lib/forebay if installed. */
static bool find_library(char path[PATH_MAX])
{
	char own[PATH_MAX - sizeof("/../lib/forebay/" LIBRARY)];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		return false;
	own[length] = '\0';
	dirname(own);
	snprintf(path, PATH_MAX, "%s/../lib/forebay/" LIBRARY, own);
	if (access(path, R_OK))
		snprintf(path, PATH_MAX, "%s/../lib/" LIBRARY, own);
	return !access(path, R_OK);
}

/* Adds a line to the patterns: false if there is no space for it. */
static bool add_pattern(char patterns[MAX_PATTERNS], const char *pattern)
{
	size_t used = strlen(patterns);

	if (!*pattern || strchr(pattern, '\n') || used + strlen(pattern) + 2 > MAX_PATTERNS)
		return false;
	snprintf(patterns + used, MAX_PATTERNS - used, "%s%s", used ? "\n" : "", pattern);
	return true;
}

/* Behind what is preloaded already. */
static bool set_environment(const char *library, const char *patterns, const char *sizes)
{
	const char *before = getenv("LD_PRELOAD");
	char *list = NULL;
	bool done;

	if (asprintf(&list, "%s%s%s", before ?: "", before && *before ? ":" : "", library) < 0)
		return false;
	done = !setenv("LD_PRELOAD", list, 1) && !setenv("FOREBAY_LOG_PATTERNS", patterns, 1) &&
	       !setenv("FOREBAY_LOG_SIZES", sizes, 1);
	free(list);
	return done;
}

static enum exit_status start(char **command, const char *patterns, const char *sizes)
{
	char library[PATH_MAX];

	if (is_static(command[0])) {
		problem("%s is linked statically: nothing can be put under it", command[0]);
		advice("Run it without `forebay log-preload`, or build it with shared libraries.");
		return FAILED;
	}
	if (!find_library(library)) {
		problem("%s is not installed beside this command", LIBRARY);
		advice("make install (in Forebay's sources), or install the package forebay.");
		return FAILED;
	}
	if (strpbrk(library, " :")) {
		problem("%s has a space or a colon in its path, and LD_PRELOAD can't name it", library);
		advice("Install Forebay, or build it in another folder.");
		return FAILED;
	}
	if (!set_environment(library, *patterns ? patterns : PATTERN, sizes)) {
		problem("out of memory");
		return FAILED;
	}
	execvp(command[0], command);
	problem("%s: %s", command[0], strerror(errno));
	return FAILED;
}

static bool parse_chunk(const char *text, __u64 *chunk)
{
	return size_parse(text, chunk) && *chunk && *chunk % 4096 == 0 && *chunk <= 1 << 30;
}

/* A number of chunks: 0 if it isn't one. */
static unsigned int chunks(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && n <= 1024 ? (unsigned int)n : 0;
}

static enum exit_status log_preload(const struct verb *verb, int argc, char **argv)
{
	unsigned int low_water = 4, pre_alloc = 8;
	char patterns[MAX_PATTERNS] = "", sizes[80];
	__u64 chunk = 2 << 20;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_PATTERN && !add_pattern(patterns, optarg))
			return usage_problem(verb, "--pattern '%s': empty, of two lines or too long", optarg);
		if (option == OPT_CHUNK && !parse_chunk(optarg, &chunk))
			return usage_problem(verb, "--chunk-size %s: not a multiple of 4096 up to 1G",
					     optarg);
		if (option == OPT_LOW_WATER)
			low_water = chunks(optarg);
		if (option == OPT_PRE_ALLOC)
			pre_alloc = chunks(optarg);
		if (!low_water || !pre_alloc)
			return usage_problem(verb, "%s %s: not a number of chunks from 1 to 1024",
					     low_water ? "--pre-allocate" : "--low-water", optarg);
	}
	if (chunk * low_water >= MAX_AHEAD || chunk * pre_alloc >= MAX_AHEAD)
		return usage_problem(verb, "--low-water and --pre-allocate: so many chunks have 16G or more");
	if (optind == argc)
		return usage_problem(verb, "expected a command");
	snprintf(sizes, sizeof(sizes), "%llu %u %u", (unsigned long long)chunk, low_water, pre_alloc);
	return start(argv + optind, patterns, sizes);
}

const struct verb verb_log_preload = {
	.name = "log-preload",
	.arguments = "[OPTION]... -- COMMAND [ARGUMENT]...",
	.summary = "run a program whose logs are appended to in memory",
	.help = "Runs a program that appends to logs and syncs them, such as Redis or Valkey, so that\n"
		"appends and syncs are stores into a mapping of the file. Exit status: that of the\n"
		"command; 8 it could not be started, 16 wrong usage.\n\n"
		"  --pattern PATTERN   the logs: a shell pattern for their names, or for paths if it\n"
		"                      has a slash [*.incr.aof]; may be given several times\n"
		"  --chunk-size SIZE   of chunks, the unit of the following [2M]\n"
		"  --low-water N       chunks left when more space is allocated [4]\n"
		"  --pre-allocate N    chunks allocated at once [8]\n",
	.options = options,
	.runs = true,
	.run = log_preload,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay drain: has the kernel write everything back, and shows the progress.
 *
 * The ioctl returns when everything is written. So a second thread makes the ioctl, while the main thread
 * reads how many pages are left. Without /proc or /sys, as in some containers, only the result is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/forebay.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "../core/store/format.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/shell.h"
#include "base/verb.h"
#include "sys/mounts.h"
#include "sys/rights.h"
#include "sys/sysfs.h"

enum { OPT_DISCARD = 1, OPT_QUIET };

static const struct option options[] = {
	{ "discard-unplaced", no_argument, NULL, OPT_DISCARD },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

/* Between two updates on a terminal, and between two lines in a log. */
#define TERMINAL_STEP_MS	100
#define LOG_STEP_MS		2000

struct drain {
	const char *path;
	int fd;
	bool discard, quiet;
	char cache[NAME_MAX + 1];	/* the kernel's name of the device; "": not known */
	bool counted;			/* pages of the cache can be counted */
	int err;			/* errno of the thread's ioctl */
};

static void *call(void *arg)
{
	struct drain *drain = arg;

	drain->err = ioctl(drain->fd, FOREBAY_IOC_DRAIN) ? errno : 0;
	return NULL;
}

static uint64_t pages(const struct drain *drain, const char *attribute)
{
	uint64_t n = 0;

	cache_attribute(drain->cache, attribute, &n);
	return n;
}

static void show_progress(const struct drain *drain)
{
	uint64_t left = pages(drain, "pages_out_of_sync");
	char size[SIZE_TEXT];

	if (drain->counted)
		progress_line(drain->path, "%s left", size_text(size, left << PS_PAGE_SHIFT));
	else
		progress_line(drain->path, "being written back");
}

static bool ended_within(pthread_t thread, int milliseconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += milliseconds % 1000 * 1000000L;
	until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

/* Returns 0 or the errno of the ioctl. */
static int write_back(struct drain *drain)
{
	bool terminal = is_screen(stderr);
	pthread_t thread;

	if (drain->quiet || pthread_create(&thread, NULL, call, drain)) {
		call(drain);
		return drain->err;
	}
	while (!ended_within(thread, terminal ? TERMINAL_STEP_MS : LOG_STEP_MS))
		show_progress(drain);
	if (terminal)
		fputs("\r\033[K", stderr);
	return drain->err;
}

static void find_cache_name(struct drain *drain)
{
	const struct forebay_mount *mount;
	struct forebay_mounts mounts;
	uint64_t n;

	mounts_look(&mounts);
	mount = mount_of_path(&mounts, drain->path);
	if (mount)
		snprintf(drain->cache, sizeof(drain->cache), "%s", mount->cache);
	mounts_free(&mounts);
	drain->counted = *drain->cache && cache_attribute(drain->cache, "pages_out_of_sync", &n);
}

static bool open_mount(struct drain *drain)
{
	struct statfs fs;
	struct stat st;

	drain->fd = open(drain->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (drain->fd < 0 || fstatfs(drain->fd, &fs)) {
		problem("cannot open %s: %s", drain->path, strerror(errno));
		return false;
	}
	if (fs.f_type != FOREBAY_SUPER_MAGIC) {
		problem("%s is not on a forebay mount", drain->path);
		advice("`forebay status` lists the mounts.");
		return false;
	}
	/* The driver of a device gives the ioctl a meaning of its own. */
	if (fstat(drain->fd, &st) || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
		problem("%s is neither a file nor a directory", drain->path);
		advice("Name the mount point.");
		return false;
	}
	find_cache_name(drain);
	return true;
}

static void say_busy(const struct drain *drain)
{
	uint64_t busy = pages(drain, "pages_busy");
	char number[32] = "some";

	if (drain->counted)
		snprintf(number, sizeof(number), "%llu", (unsigned long long)busy);
	problem("%s: %s page%s could not be drained: direct I/O or a pipe may be changing them", drain->path,
		number, drain->counted ? PLURAL(busy) : "s");
	advice("Copies are on the lower file system. End what holds the pages, and drain again.");
}

static void say_not_written(const struct drain *drain, int err)
{
	uint64_t left = pages(drain, "pages_out_of_sync");
	char size[SIZE_TEXT];

	problem("%s: not everything could be written back: %s", drain->path, strerror(err));
	if (!drain->counted) {
		advice("Nothing is lost. %s", lower_advice(err));
		return;
	}
	advice("%s left in the cache; nothing is lost. %s", size_text(size, left << PS_PAGE_SHIFT),
	       lower_advice(err));
	advice(FOREBAY_SYSFS "/%s: writeback_errors, last_error say how often and why.", drain->cache);
}

static enum exit_status say_failed(const struct drain *drain, int err)
{
	uint64_t left = pages(drain, "pages_out_of_sync"), unplaced = pages(drain, "pages_unplaced");
	char size[SIZE_TEXT];

	if (err == EPERM) {
		problem("%s: only root may drain a cache", drain->path);
		if (!geteuid())
			advice("%s", rights_advice());
		return FAILED;
	}
	if (err == EBUSY)
		say_busy(drain);
	else if (left || !unplaced)
		say_not_written(drain, err);
	if (unplaced) {
		problem("%s: %llu page%s (%s) can't be placed: the lower file is gone or can't be opened",
			drain->path, (unsigned long long)unplaced, PLURAL(unplaced),
			size_text(size, unplaced << PS_PAGE_SHIFT));
		advice("Bring the file back (dmesg says what failed), or give up on them: forebay drain --discard-unplaced %s",
		       in_shell(drain->path));
	}
	return LEFT;
}

/* Pages are discarded only after a first attempt to place them. */
static enum exit_status run_drain(struct drain *drain)
{
	uint64_t before = pages(drain, "pages_written_back"), discarded, written;
	char size[SIZE_TEXT];
	int err = write_back(drain);

	discarded = drain->discard ? pages(drain, "pages_unplaced") : 0;
	if (drain->discard && err != EPERM) {
		if (ioctl(drain->fd, FOREBAY_IOC_DISCARD_UNPLACED)) {
			problem("%s: cannot discard pages: %s", drain->path, strerror(errno));
			return FAILED;
		}
		err = write_back(drain);
	}
	if (err || pages(drain, "pages_unplaced"))
		return say_failed(drain, err);
	if (drain->quiet)
		return DONE;
	written = pages(drain, "pages_written_back") - before;
	print_of(drain->path, "everything is on the lower file system");
	if (drain->counted)
		printf(" (%s written back now)", size_text(size, written << PS_PAGE_SHIFT));
	putchar('\n');
	if (discarded)
		print_of(drain->path, "%llu page%s without a file discarded\n",
			 (unsigned long long)discarded, PLURAL(discarded));
	return DONE;
}

static enum exit_status drain(const struct verb *verb, int argc, char **argv)
{
	struct drain drain = { .fd = -1 };
	enum exit_status status;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_DISCARD)
			drain.discard = true;
		else
			drain.quiet = true;
	}
	if (argc - optind != 1)
		return usage_problem(verb, "expected one mount point");
	drain.path = argv[optind];
	status = open_mount(&drain) ? run_drain(&drain) : FAILED;
	if (drain.fd >= 0)
		close(drain.fd);
	return status;
}

const struct verb verb_drain = {
	.name = "drain",
	.arguments = "[--discard-unplaced] [--quiet] MOUNTPOINT",
	.summary = "write everything back to the lower file system",
	.help = "Writes everything back to the lower file system, and says when that is done. The\n"
		"mount stays usable. Exit status: 0 all written, 4 something is left in the cache,\n"
		"8 could not be tried, 16 wrong usage.\n"
		"\n"
		"  --discard-unplaced  then give up the pages whose lower file is gone: their\n"
		"                      contents are lost\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = options,
	.run = drain,
};

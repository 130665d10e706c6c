// SPDX-License-Identifier: GPL-2.0-only
/*
 * mount.forebay: mounts a forebay file system for mount(8), which calls it by its name, and for systemd,
 * which calls mount(8). mount(2) returns only an errno; this helper prints the module's own sentence. It
 * also finds caches by UUID.
 *
 * It waits for no device: systemd orders mounts after what they need.
 *
 * mount/ is a program of its own. It uses base/message.h, sys/ and device/identity.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libmount.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "context.h"
#include "options.h"
#include "say.h"

/* As mount(8) defines them. */
enum { EXIT_DONE = 0, EXIT_USAGE = 1, EXIT_SYSTEM = 2, EXIT_MOUNT = 32 };

struct request {
	const char *lower, *target, *namespace;
	char *options;			/* of all -o, joined */
	bool fake, sloppy, verbose, no_mtab;
};

static const char usage_text[] =
	"usage: mount.forebay LOWER MOUNTPOINT [-fnrsvw] [-N NAMESPACE] [-o OPTIONS]\n"
	"\n"
	"mount(8) calls this: mount -t forebay -o cache=DEVICE LOWER MOUNTPOINT.\n"
	"forebay(5) has the options.\n";

static int usage_problem(void)
{
	fputs(usage_text, stderr);
	return EXIT_USAGE;
}

static bool add_options(struct request *req, const char *text)
{
	char *joined = NULL;

	if (asprintf(&joined, "%s%s%s", req->options ?: "", req->options ? "," : "", text) < 0)
		return false;
	free(req->options);
	req->options = joined;
	return true;
}

static bool take_option(struct request *req, int option)
{
	switch (option) {
	case 'o':
		return add_options(req, optarg);
	case 'r':
		return add_options(req, "ro");
	case 'w':
		return add_options(req, "rw");
	case 'f':
		req->fake = true;
		return true;
	case 'n':
		req->no_mtab = true;
		return true;
	case 's':
		req->sloppy = true;
		return true;
	case 'v':
		req->verbose = true;
		return true;
	case 'N':
		req->namespace = optarg;
		return true;
	default:
		return option == 't';	/* type and subtype; there is only one type */
	}
}

static int parse(int argc, char **argv, struct request *req)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ }
	};
	int option;

	while ((option = getopt_long(argc, argv, "fhnN:o:rst:vVw", long_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage_text, stdout);
			exit(EXIT_DONE);
		}
		if (option == 'V') {
			puts("mount.forebay " FOREBAY_VERSION);
			exit(EXIT_DONE);
		}
		if (!take_option(req, option))
			return usage_problem();
	}
	if (argc - optind != 2)
		return usage_problem();
	req->lower = argv[optind];
	req->target = argv[optind + 1];
	return EXIT_DONE;
}

/* @namespace is a path in /proc or a process id. All paths are looked up in that namespace afterwards. */
static bool enter_namespace(const char *namespace)
{
	char path[PATH_MAX];
	bool good;
	int fd;

	snprintf(path, sizeof(path), *namespace == '/' ? "%s" : "/proc/%s/ns/mnt", namespace);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	good = fd >= 0 && !setns(fd, CLONE_NEWNS);
	if (!good)
		say("cannot enter the mount namespace %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return good;
}

static bool is_directory(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		say("there is no mount point %s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		say("%s is not a directory and cannot be a mount point", path);
	else
		return true;
	return false;
}

/* Options for user space only (x-…, _netdev) are recorded where libmount keeps them. */
static void note(const char *lower, const char *target, const struct options *options)
{
	struct libmnt_update *update = mnt_new_update();
	struct libmnt_fs *fs = mnt_new_fs();

	if (update && fs && !mnt_fs_set_source(fs, lower) && !mnt_fs_set_target(fs, target) &&
	    !mnt_fs_set_fstype(fs, "forebay") && !mnt_fs_set_options(fs, options->all) &&
	    !mnt_update_set_fs(update, options->flags & MS_REMOUNT, NULL, fs))
		mnt_update_table(update, NULL);
	mnt_unref_fs(fs);
	mnt_free_update(update);
}

static bool mount_it(const struct request *req, const char *lower, const char *target,
		     const struct options *options)
{
	struct context context = {
		.fd = -1,
		.remount = options->flags & MS_REMOUNT,
		.sloppy = req->sloppy,
		.verbose = req->verbose,
	};
	bool good;

	if (context.remount)
		good = context_pick(&context, target) && context_configure(&context, NULL, options) &&
		       context_remount(&context, target, options);
	else
		good = is_directory(target) && context_new(&context) &&
		       context_configure(&context, lower, options) &&
		       context_mount(&context, target, options);
	if (context.fd >= 0)
		close(context.fd);
	return good;
}

/* The kernel shows paths as it gets them, so they are made absolute. It refuses missing paths itself. */
static bool mount_paths(const struct request *req, const struct options *options)
{
	char *lower = realpath(req->lower, NULL), *target = realpath(req->target, NULL);
	bool good = mount_it(req, lower ?: req->lower, target ?: req->target, options);

	if (good && !req->no_mtab)
		note(lower ?: req->lower, target ?: req->target, options);
	if (good && req->verbose)
		printf("mount.forebay: %s %s at %s\n", lower ?: req->lower,
		       options->flags & MS_REMOUNT ? "remounted" : "mounted", target ?: req->target);
	free(lower);
	free(target);
	return good;
}

static int run(const struct request *req)
{
	struct options options;
	int status = EXIT_MOUNT;

	say_about(req->target);
	if (req->namespace && !enter_namespace(req->namespace))
		return EXIT_SYSTEM;
	if (!options_parse(&options, req->options ?: "")) {
		status = EXIT_USAGE;
	} else if (options.flags & (MS_BIND | MS_MOVE)) {
		say("mount(8) itself does bind and move: call mount instead");
		status = EXIT_USAGE;
	} else if (req->fake || mount_paths(req, &options)) {
		status = EXIT_DONE;
	}
	options_free(&options);
	return status;
}

int main(int argc, char **argv)
{
	struct request req = { };
	int status = parse(argc, argv, &req);

	if (!status)
		status = run(&req);
	free(req.options);
	return status;
}

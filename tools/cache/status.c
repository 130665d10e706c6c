// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay status: gathers the state of caches: of mounted ones from sysfs, of others from the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/latency.h"
#include "base/message.h"
#include "base/shell.h"
#include "base/verb.h"
#include "device/identity.h"
#include "device/store.h"
#include "sys/mounts.h"
#include "sys/release.h"
#include "sys/sysfs.h"
#include "status.h"
#include "unmounted.h"

#define LATENCY_PREFIX	"sync_latency_"		/* of files that base/latency.h reads */

enum { OPT_JSON = 1, OPT_WATCH };

#define WATCH_INTERVAL	2	/* seconds */

enum form { TEXT, JSON, JSON_LINE };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "watch", optional_argument, NULL, OPT_WATCH },
	OPTION_HELP,
	{ }
};

struct gathering {
	struct forebay_mounts mounts;
	json_object *caches;		/* array, also of files, which have a key "file" */
	bool failed;			/* one of them couldn't be read */
};

/* Adds where a cache is mounted, and over which lower directory. */
static void add_mounts(json_object *cache, const char *name, const struct forebay_mounts *mounts)
{
	const struct forebay_mount *first = mount_of_cache(mounts, name);
	json_object *targets = json_object_new_array();

	for (int i = 0; i < mounts->n; i++)
		if (!strcmp(mounts->mount[i].cache, name))
			json_object_array_add(targets,
					      json_object_new_string(mounts->mount[i].target));
	json_object_object_add(cache, "mountpoints", targets);
	json_object_object_add(cache, "lower",
			       first ? json_object_new_string(first->lower) : NULL);
}

static json_object *attribute_value(const char *name, const char *text)
{
	json_object *latency;
	char *end;
	long long number = strtoll(text, &end, 10);

	if (!strncmp(name, LATENCY_PREFIX, strlen(LATENCY_PREFIX))) {
		latency = json_object_new_object();
		latency_add(latency, text);
		return latency;
	}
	if (*text && !*end)
		return json_object_new_int64(number);
	return json_object_new_string(text);
}

struct attributes {
	const char *name;		/* of the device, as the kernel names it */
	json_object *cache;
};

static void take_attribute(void *arg, const char *attribute)
{
	char path[PATH_MAX], text[PATH_MAX];
	struct attributes *all = arg;

	kernel_path(path, FOREBAY_SYSFS "/%s/%s", all->name, attribute);
	if (kernel_read(path, text, sizeof(text)))
		json_object_object_add(all->cache, attribute, attribute_value(attribute, text));
}

/*
 * Gathers every attribute that the kernel shows, including unknown ones. @may_vanish: a cache that was
 * unmounted meanwhile is left out.
 */
static bool gather_mounted(struct gathering *all, const char *name, bool may_vanish)
{
	json_object *cache = json_object_new_object();
	char folder[PATH_MAX], path[PATH_MAX], text[PATH_MAX];
	int err;

	if (!kernel_read(kernel_path(path, "/sys/class/block/%s/dev", name), text, sizeof(text)) ||
	    !disk_path(text, path))
		snprintf(path, sizeof(path), "/dev/%s", name);
	json_add_text(cache, "device", path);
	json_add_flag(cache, "mounted", true);
	add_mounts(cache, name, &all->mounts);
	snprintf(folder, sizeof(folder), FOREBAY_SYSFS "/%s", name);
	if (names_in(folder, take_attribute, &(struct attributes){ name, cache })) {
		json_object_array_add(all->caches, cache);
		return true;
	}
	err = errno;
	json_object_put(cache);
	if (err == ENOENT && may_vanish)
		return true;
	if (sysfs_is_there())
		problem("cannot read %s: %s", folder, strerror(err));
	return false;
}

static void add_unmounted(void *arg, const struct unmounted *found)
{
	json_object *cache = json_object_new_object();
	struct gathering *all = arg;

	json_add_text(cache, "device", found->dev->path);
	json_add_flag(cache, "mounted", false);
	add_mounts(cache, "", &(struct forebay_mounts){ });
	store_describe(found->ps, found->counts, cache);
	json_object_array_add(all->caches, cache);
}

static bool gather_unmounted(struct gathering *all, const char *path)
{
	struct store_counts counts;
	struct device dev;
	enum ps_error err;
	struct ps ps;

	/* Opened exclusively, a device that is watched could not be mounted meanwhile. */
	if (!device_open(&dev, path, DEVICE_SHARED))
		return false;
	err = ps_open(&ps, dev.base, dev.size, PS_OPEN_READ_ONLY);
	if (err) {
		problem("%s: %s", path, ps_strerror(err));
		if (err == PS_E_CORRUPT || err == PS_E_GEOMETRY)
			advice("`forebay check %s` tells more.", in_shell(path));
		else if (err == PS_E_WRITELOG)
			advice("`forebay writelog status %s` shows that.", in_shell(path));
		device_close(&dev);
		return false;
	}
	store_count(path, &ps, &counts);
	add_unmounted(all, &(struct unmounted){ &dev, &ps, &counts });
	device_close(&dev);
	return true;
}

static bool is_mounted(const char *name)
{
	uint64_t pages;

	return cache_attribute(name, "pages_total", &pages);
}

static bool gather_one_file(struct gathering *all, const char *path)
{
	bool good = true;
	json_object *file = gather_file(path, &good);

	if (file)
		json_object_array_add(all->caches, file);
	return good;
}

/* @path is a device, an image, or anything on a forebay mount. */
static bool gather_one(struct gathering *all, const char *path)
{
	const struct forebay_mount *mount = mount_of_path(&all->mounts, path);
	struct identity identity;
	char name[NAME_MAX + 1];
	struct stat st;

	if (stat(path, &st)) {
		problem("cannot find %s: %s", path, strerror(errno));
		return false;
	}
	if (mount && S_ISREG(st.st_mode))
		return gather_one_file(all, path);
	if (mount)
		return gather_mounted(all, mount->cache, false);
	if (S_ISDIR(st.st_mode)) {
		if (say_older(path))
			return false;
		problem("%s is not on a forebay mount", path);
		advice("`forebay status` lists the mounts.");
		return false;
	}
	if (S_ISBLK(st.st_mode) && !sysfs_is_there())	/* it may be mounted */
		return false;
	if (S_ISBLK(st.st_mode) && disk_name(st.st_rdev, name) && is_mounted(name))
		return gather_mounted(all, name, false);
	if (gather_unmounted(all, path))
		return true;
	if (S_ISREG(st.st_mode) && !(identify(path, &identity) && identity.type))
		advice("It is on no forebay mount (`forebay status` lists them), so it was read as the image of a cache.");
	return false;
}

static void take_mounted(void *arg, const char *name)
{
	struct gathering *all = arg;

	if (!gather_mounted(all, name, true))
		all->failed = true;
}

static bool gather_all_mounted(struct gathering *all)
{
	all->failed = false;
	if (!names_in(FOREBAY_SYSFS, take_mounted, all))
		return sysfs_is_there();
	return !all->failed;
}

static bool gather_all(struct gathering *all)
{
	bool good = gather_all_mounted(all);

	unmounted_each(add_unmounted, all);
	return good;
}

/**
 * gather_mounted_caches - gather the state of every mounted cache
 * @all: array to which an object for each one is added
 *
 * Return: false, after a message, if one can't be read.
 */
bool gather_mounted_caches(json_object *all)
{
	struct gathering gathering = { .caches = all };
	bool good = mounts_read(&gathering.mounts);

	if (!good)
		return false;
	good = gather_all_mounted(&gathering);
	mounts_free(&gathering.mounts);
	return good;
}

static void print(const struct gathering *all)
{
	size_t n = json_object_array_length(all->caches);
	json_object *one;

	for (size_t i = 0; i < n; i++) {
		if (i)
			putchar('\n');
		one = json_object_array_get_idx(all->caches, i);
		if (json_object_object_get(one, "file"))
			print_file(one);
		else
			print_cache(one);
	}
}

static void say_none_mounted(void)
{
	char text[ADVICE_TEXT];

	puts("No forebay file system is mounted.");
	if (module_is_elsewhere("forebay", text))
		puts(text);
}

/*
 * Shows the paths' state, or that of all caches if there is no path. An empty array means that there is no
 * cache, so it isn't printed where all that was asked for could not be read.
 */
static bool show(char **paths, int n, enum form form)
{
	struct gathering all;
	bool good = true, any;

	if (!mounts_read(&all.mounts))
		return false;
	all.caches = json_object_new_array();
	for (int i = 0; i < n; i++)
		good = gather_one(&all, paths[i]) && good;
	if (!n)
		good = gather_all(&all);
	any = json_object_array_length(all.caches);
	if (form == TEXT && good && !any)
		say_none_mounted();
	if (form == TEXT)
		print(&all);
	if (form == TEXT || (!good && !any))
		json_object_put(all.caches);
	else if (form == JSON)
		print_json(all.caches);
	else
		print_json_line(all.caches);
	mounts_free(&all.mounts);
	return good;
}

/* Before each of many looks: an empty screen, or a line with the time. */
static void begin_look(void)
{
	time_t now = time(NULL);
	char when[32];

	if (is_screen(stdout)) {
		fputs("\033[H\033[2J", stdout);
	} else {
		strftime(when, sizeof(when), "%F %T", localtime(&now));
		printf("== %s\n", when);
	}
}

/* Shows the state until the output is closed, or something can't be read. */
static enum exit_status watch(char **paths, int n, enum form form, double interval)
{
	struct timespec pause = { interval, (interval - (time_t)interval) * 1e9 };

	do {
		if (form == TEXT)
			begin_look();
		if (!show(paths, n, form))
			return FAILED;
	} while (!fflush(stdout) && !nanosleep(&pause, NULL));
	return DONE;
}

static enum exit_status status(const struct verb *verb, int argc, char **argv)
{
	double interval = 0;
	enum form form = TEXT;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_JSON)
			form = JSON;
		else if (!optarg)
			interval = WATCH_INTERVAL;
		else if (!parse_decimal(optarg, 86400, &interval))
			return usage_problem(verb, "--watch=%s: expected seconds, up to 86400", optarg);
	}
	if (interval)
		return watch(argv + optind, argc - optind, form == JSON ? JSON_LINE : TEXT, interval);
	return show(argv + optind, argc - optind, form) ? DONE : FAILED;
}

const struct verb verb_status = {
	.name = "status",
	.arguments = "[--json] [--watch[=SECONDS]] [MOUNTPOINT|DEVICE|FILE]...",
	.summary = "show what caches hold and do, or where a file is",
	.help = "Shows the caches that are mounted, and those that aren't though they hold what their\n"
		"lower directory lacks; or those of the mount points and devices named.\n"
		"A device that is not mounted is read directly, which takes root. Of a file on a\n"
		"mount: which ranges are mapped, attached, pinned or locked, and its pages by state.\n"
		"\n"
		"  --json              a JSON array with an object for each cache or file\n"
		"  --watch[=SECONDS]   again every 2 seconds, or so many, until interrupted\n",
	.options = options,
	.run = status,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay format: makes an empty store on a device, unless the device can't hold one or holds other data.
 *
 * The order is such that an interruption never leaves a device that is two things: what others made is wiped
 * first, then core/ breaks the superblocks that there may be, and writes the new ones last. After an
 * interruption the device is unformatted or has damaged superblocks, and is formatted again with --force.
 */
#include <stdlib.h>
#include <string.h>
#include <uuid.h>

#include "../core/names/names.h"
#include "base/json.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/verb.h"
#include "device/fitness.h"
#include "device/store.h"
#include "format.h"

enum { OPT_FORCE = 1, OPT_FILES, OPT_NAMES, OPT_UUID, OPT_JSON };

static const struct option options[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "files", required_argument, NULL, OPT_FILES },
	{ "names", required_argument, NULL, OPT_NAMES },
	{ "uuid", required_argument, NULL, OPT_UUID },
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

struct request {
	const char *path;
	bool force, json, quiet;
	bool names_auto;		/* the device's size says how large the name log is */
	struct ps_format_options make;
};

/* Larger than the longest ring by what else a name log has, and more. */
#define NAMES_MAX	(4ULL << 30)
#define AUTO_SHARE	32
#define AUTO_MIN	(1ULL << 20)
#define AUTO_MAX	(64ULL << 20)

static bool parse_files(const char *text, u32 *files)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !n || n > PS_MAX_FILES)
		return false;
	*files = n;
	return true;
}

static bool parse_names(const char *text, struct request *req)
{
	__u64 size;

	req->names_auto = !strcmp(text, "auto");
	if (req->names_auto)
		return true;
	if (!size_parse(text, &size) || size < NL_MIN_SIZE || size > NAMES_MAX)
		return false;
	req->make.names_size = size - size % PS_PAGE_SIZE;
	return true;
}

static enum exit_status parse(const struct verb *verb, int argc, char **argv, struct request *req)
{
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		switch (option) {
		case OPT_FORCE:
			req->force = true;
			break;
		case OPT_FILES:
			if (!parse_files(optarg, &req->make.nr_files))
				return usage_problem(verb, "--files %s: expected a number from 1 to %u",
						     optarg, PS_MAX_FILES);
			break;
		case OPT_NAMES:
			if (!parse_names(optarg, req))
				return usage_problem(verb, "--names %s: expected a size from 64k to 4g, or auto",
						     optarg);
			break;
		case OPT_UUID:
			if (uuid_parse(optarg, req->make.cache_uuid) ||
			    uuid_is_null(req->make.cache_uuid))
				return usage_problem(verb, "--uuid %s: not a UUID", optarg);
			break;
		case OPT_JSON:
			req->json = true;
			break;
		}
	}
	if (argc - optind != 1)
		return usage_problem(verb, "expected one device");
	req->path = argv[optind];
	return DONE;
}

/*
 * An unformatted device, or an empty cache, may be overwritten. ps_format() refuses a device that is too
 * small.
 */
static bool may_overwrite(const struct request *req, const struct device *dev)
{
	enum ps_error err;
	struct ps ps;

	err = ps_open(&ps, dev->base, dev->size, PS_OPEN_READ_ONLY);
	if (err == PS_E_NOT_FORMATTED || err == PS_E_TOO_SMALL)
		err = PS_OK;
	return device_may_format(dev, req->force, err ? ps_strerror(err) : NULL);
}

static void report(const struct request *req, const struct device *dev, const struct ps *ps)
{
	u64 bytes = (u64)ps->nr_pages << PS_PAGE_SHIFT;
	char uuid[37], size[SIZE_TEXT];
	json_object *json;

	uuid_text(uuid, ps->super.cache_uuid);
	if (!req->json) {
		print_of(req->path, "empty cache, %s in %u pages, room for %u files, ",
			 size_text(size, bytes), ps->nr_pages, ps->nr_files);
		if (ps->names)
			printf("name log of %s, ", size_text(size, ps->names_size));
		printf("UUID %s\n", uuid);
		return;
	}
	json = json_object_new_object();
	json_add_text(json, "device", req->path);
	json_add_text(json, "cache_uuid", uuid);
	json_add_number(json, "device_size", dev->size);
	json_add_number(json, "pages_total", ps->nr_pages);
	json_add_number(json, "files_total", ps->nr_files);
	json_add_number(json, "names_size", ps->names_size);
	print_json(json);
}

/* ps_format() calls it when no superblock is valid. */
static bool make_names(void *region, u64 size, const void *arg)
{
	struct nl_format_options opt = { };

	(void)arg;
	uuid_generate(opt.uuid);
	return !nl_format(region, size, &opt);
}

/* Sets the name log's size. False, after a message: the device is too small for it. */
static bool choose_names(struct request *req, const struct device *dev)
{
	struct ps_format_options *make = &req->make;
	char names[SIZE_TEXT], half[SIZE_TEXT];

	make->make_names = make_names;
	if (req->names_auto) {
		make->names_size = min_t(u64, max_t(u64, dev->size / AUTO_SHARE, AUTO_MIN), AUTO_MAX);
		make->names_size -= make->names_size % PS_PAGE_SIZE;
	}
	if (dev->size < PS_MIN_SIZE || make->names_size <= dev->size / 2)
		return true;
	problem("%s has no room for a name log of %s", req->path, size_text(names, make->names_size));
	advice("It may take half of the device, %s; `--names auto` takes less.",
	       size_text(half, dev->size / 2));
	return false;
}

static enum exit_status make(const struct request *req, const struct device *dev)
{
	struct progress progress;
	enum ps_error err;
	struct ps ps;

	err = ps_format_fits(dev->size, &req->make);
	if (!err && !device_wipe(dev))
		return FAILED;
	if (!err) {
		progress_begin(&progress, req->path, "being formatted");
		err = ps_format(dev->base, dev->size, &req->make);
		progress_end(&progress);
	}
	if (err == PS_E_GEOMETRY && req->make.nr_files) {
		problem("%s has no room for %u file records and as many pages", req->path,
			req->make.nr_files);
		advice("Choose fewer with --files, or leave it out.");
		return FAILED;
	}
	if (!err && !device_formatted(dev))
		return FAILED;
	if (!err)
		err = ps_open(&ps, dev->base, dev->size, PS_OPEN_READ_ONLY);
	if (err) {
		problem("%s: %s", req->path, ps_strerror(err));
		return FAILED;
	}
	if (!req->quiet)
		report(req, dev, &ps);
	return DONE;
}

static enum exit_status format_device(struct request *req)
{
	enum exit_status status;
	struct device dev;

	if (uuid_is_null(req->make.cache_uuid))
		uuid_generate(req->make.cache_uuid);
	if (!device_open(&dev, req->path, DEVICE_WRITE))
		return FAILED;
	status = may_overwrite(req, &dev) && choose_names(req, &dev) ? make(req, &dev) : FAILED;
	device_close(&dev);
	return status;
}

/**
 * format_cache - make an empty cache, like the verb without options
 * @path: device
 *
 * Return: false, after a message, if that failed.
 */
bool format_cache(const char *path)
{
	return format_device(&(struct request){ .path = path, .quiet = true }) == DONE;
}

static enum exit_status format(const struct verb *verb, int argc, char **argv)
{
	struct request req = { };
	enum exit_status status = parse(verb, argc, argv, &req);

	return status ?: format_device(&req);
}

const struct verb verb_format = {
	.name = "format",
	.arguments = "[--force] [--files N] [--names SIZE] [--uuid UUID] [--json] DEVICE",
	.summary = "make an empty cache on persistent memory",
	.help = "Makes an empty cache on DEVICE: persistent memory in fsdax mode, like /dev/pmem0,\n"
		"or a file that is an image of such a device. Refuses a device that is in use, or\n"
		"that holds something: a file system, or a cache or write log with changes not yet\n"
		"written back.\n"
		"\n"
		"  --force             overwrite whatever the device holds\n"
		"  --files N           room for N files with pages in the cache at a time\n"
		"                      (default: one for each 16 pages)\n"
		"  --names SIZE        take SIZE bytes, or with k, m or g behind the number, for a log\n"
		"                      of changes of names; auto: 1/32 of the device, 1m to 64m\n"
		"                      (default: no log; an older Forebay can't use a cache with one)\n"
		"  --uuid UUID         name the cache; default: a random one\n"
		"  --json              say in JSON what was made\n",
	.options = options,
	.destroys = true,
	.run = format,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay format: makes an empty store on a device, unless something speaks
 * against it.
 */
#include <stdlib.h>
#include <uuid.h>

#include "../core/host_pm.h"
#include "fitness.h"
#include "format.h"
#include "message.h"
#include "store.h"
#include "verb.h"

enum { OPT_FORCE = 1, OPT_FILES, OPT_UUID, OPT_JSON };

static const struct option options[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "files", required_argument, NULL, OPT_FILES },
	{ "uuid", required_argument, NULL, OPT_UUID },
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

struct request {
	const char *path;
	bool force, json, quiet;
	struct ps_format_options make;
};

static bool parse_files(const char *text, u32 *files)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !n || n > PS_MAX_FILES)
		return false;
	*files = n;
	return true;
}

static enum exit_status parse(const struct verb *verb, int argc, char **argv, struct request *req)
{
	int option;

	uuid_generate(req->make.cache_uuid);
	while ((option = next_option(verb, argc, argv)) != -1) {
		switch (option) {
		case OPT_FORCE:
			req->force = true;
			break;
		case OPT_FILES:
			if (!parse_files(optarg, &req->make.nr_files))
				return usage_problem(verb, "--files %s: want a number from 1 to %u",
						     optarg, PS_MAX_FILES);
			break;
		case OPT_UUID:
			if (uuid_parse(optarg, req->make.cache_uuid) ||
			    uuid_is_null(req->make.cache_uuid))
				return usage_problem(verb, "--uuid %s: is no UUID", optarg);
			break;
		case OPT_JSON:
			req->json = true;
			break;
		}
	}
	if (argc - optind != 1)
		return usage_problem(verb, "want one device");
	req->path = argv[optind];
	return DONE;
}

/* What a mount would bring to the lower file system, or might if it weren't damaged. */
static bool holds_nothing_of_worth(const struct request *req, const struct ps *ps)
{
	char uuid[37], size[SIZE_TEXT];
	struct store_counts counts;

	store_count(ps, &counts);
	uuid_text(uuid, ps->super.lower_uuid);
	if (counts.records_damaged) {
		problem("%s is a cache with %llu damaged record%s", req->path,
			counts.records_damaged, PLURAL(counts.records_damaged));
		advice("`forebay check %s` tells more. To lose what it holds: --force", req->path);
		return false;
	}
	if (counts.pages_out_of_sync)
		problem("%s is a cache that holds %llu page%s (%s) not yet written to the lower file system, %s",
			req->path, counts.pages_out_of_sync, PLURAL(counts.pages_out_of_sync),
			size_text(size, counts.pages_out_of_sync << PS_PAGE_SHIFT), uuid);
	else if (counts.files_unsettled)
		problem("%s is a cache that holds the size%s of %llu file%s of the lower file system, %s",
			req->path, PLURAL(counts.files_unsettled), counts.files_unsettled,
			PLURAL(counts.files_unsettled), uuid);
	else
		return true;
	advice("To keep that: mount -t forebay -o cache=%s LOWER MOUNTPOINT, then unmount.",
	       req->path);
	advice("To lose it: --force");
	return false;
}

/* Nobody's data is on the device, or the user doesn't care. */
static bool may_overwrite(const struct request *req, const struct device *dev)
{
	enum ps_error err;
	struct ps ps;

	if (req->force)
		return true;
	err = ps_open(&ps, dev->base, dev->size, PS_OPEN_READ_ONLY);
	if (!err && !holds_nothing_of_worth(req, &ps))
		return false;
	if (!unclaimed(dev))
		return false;
	if (err && err != PS_E_NOT_FORMATTED) {
		problem("%s: %s", req->path, ps_strerror(err));
		advice("To overwrite whatever is there: --force");
		return false;
	}
	return true;
}

static void report(const struct request *req, const struct device *dev, const struct ps *ps)
{
	u64 bytes = (u64)ps->nr_pages << PS_PAGE_SHIFT;
	char uuid[37], size[SIZE_TEXT];
	json_object *json;

	uuid_text(uuid, ps->super.cache_uuid);
	if (!req->json) {
		printf("%s: empty cache, %s in %u pages, room for %u files, UUID %s\n", req->path,
		       size_text(size, bytes), ps->nr_pages, ps->nr_files, uuid);
		return;
	}
	json = json_object_new_object();
	json_object_object_add(json, "device", json_object_new_string(req->path));
	json_object_object_add(json, "cache_uuid", json_object_new_string(uuid));
	json_object_object_add(json, "device_size", json_object_new_uint64(dev->size));
	json_object_object_add(json, "pages_total", json_object_new_uint64(ps->nr_pages));
	json_object_object_add(json, "files_total", json_object_new_uint64(ps->nr_files));
	print_json(json);
}

static enum exit_status make(const struct request *req, const struct device *dev)
{
	enum ps_error err;
	struct ps ps;

	pm_host_map(dev->base, dev->size);
	err = ps_format(dev->base, dev->size, &req->make);
	if (err == PS_E_GEOMETRY) {
		problem("%s has no room for %u file records and as many pages", req->path,
			req->make.nr_files);
		advice("Choose fewer with --files, or leave it out.");
		return FAILED;
	}
	if (!err && !formatted(dev))
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

static enum exit_status format_device(const struct request *req)
{
	enum exit_status status;
	struct device dev;

	if (!device_open(&dev, req->path, DEVICE_WRITE))
		return FAILED;
	status = usable(&dev) && may_overwrite(req, &dev) ? make(req, &dev) : FAILED;
	device_close(&dev);
	return status;
}

/**
 * format_cache - make an empty cache, as the verb does without options
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
	.arguments = "[--force] [--files N] [--uuid UUID] [--json] DEVICE",
	.summary = "make an empty cache on persistent memory",
	.help = "Makes an empty cache on DEVICE: persistent memory in fsdax mode, like /dev/pmem0,\n"
		"or a file that is an image of such a device. Refuses a device that is in use, or\n"
		"that holds something: a file system, or a cache with changes not yet written back.\n"
		"\n"
		"  --force             overwrite whatever the device holds\n"
		"  --files N           room for N files with pages in the cache at a time\n"
		"                      (default: one for each 16 pages)\n"
		"  --uuid UUID         name the cache; default: a random one\n"
		"  --json              say in JSON what was made\n",
	.options = options,
	.run = format,
};

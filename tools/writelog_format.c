// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog format: makes an empty write log on a device, unless
 * something speaks against it.
 */
#include <stdlib.h>
#include <uuid.h>

#include "../core/host_pm.h"
#include "fitness.h"
#include "message.h"
#include "verb.h"
#include "writelog_log.h"

/* Of chunks: what the target takes, dwl_device_open(). */
#define LEAST_CHUNK_SIZE	(4 * WL_PAGE_SIZE)

enum { OPT_FORCE = 1, OPT_GENERATIONS, OPT_CHUNK_SIZE, OPT_ALIGN, OPT_DATA_CHECKSUMS, OPT_UUID, OPT_JSON };

static const struct option options[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "generations", required_argument, NULL, OPT_GENERATIONS },
	{ "chunk-size", required_argument, NULL, OPT_CHUNK_SIZE },
	{ "align", required_argument, NULL, OPT_ALIGN },
	{ "data-checksums", no_argument, NULL, OPT_DATA_CHECKSUMS },
	{ "uuid", required_argument, NULL, OPT_UUID },
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

struct request {
	const char *path;
	bool force, json;
	struct wl_format_options make;
};

/* A number from @least to @most that @unit divides. */
static bool parse_number(const char *text, u32 least, u32 most, u32 unit, u32 *number)
{
	unsigned long long n;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoull(text, &end, 10);
	if (*end || n < least || n > most || n % unit)
		return false;
	*number = n;
	return true;
}

/* What is wrong with the option; NULL: nothing. */
static const char *take_option(struct request *req, int option)
{
	switch (option) {
	case OPT_FORCE:
		req->force = true;
		break;
	case OPT_GENERATIONS:
		if (!parse_number(optarg, 2, WL_MAX_GENERATIONS, 1, &req->make.nr_gens))
			return "--generations wants a number from 2 to 4096";
		break;
	case OPT_CHUNK_SIZE:
		if (!parse_number(optarg, LEAST_CHUNK_SIZE, WL_MAX_CHUNK_SIZE, WL_PAGE_SIZE,
				  &req->make.chunk_size))
			return "--chunk-size wants a multiple of 4096 from 16384 to 16777216";
		break;
	case OPT_ALIGN:
		if (!parse_number(optarg, WL_DATA_ALIGN, WL_PAGE_SIZE, WL_DATA_ALIGN, &req->make.align) ||
		    req->make.align & (req->make.align - 1))
			return "--align wants 256, 512, 1024, 2048 or 4096";
		break;
	case OPT_DATA_CHECKSUMS:
		req->make.data_crc = true;
		break;
	case OPT_UUID:
		if (uuid_parse(optarg, req->make.uuid) || uuid_is_null(req->make.uuid))
			return "--uuid wants a UUID";
		break;
	case OPT_JSON:
		req->json = true;
		break;
	}
	return NULL;
}

static enum exit_status parse(const struct verb *verb, int argc, char **argv, struct request *req)
{
	int option;

	uuid_generate(req->make.uuid);
	while ((option = next_option(verb, argc, argv)) != -1) {
		const char *wrong = take_option(req, option);

		if (wrong)
			return usage_problem(verb, "%s, not %s", wrong, optarg);
	}
	if (argc - optind != 1)
		return usage_problem(verb, "want one device");
	req->path = argv[optind];
	return DONE;
}

/* Entries are what an origin lacks. */
static bool holds_nothing_of_worth(const struct request *req, const struct wl *wl)
{
	char origin[2 * WL_ORIGIN_ID_SIZE + 1], size[SIZE_TEXT];
	struct log_counts counts;

	if (!log_count(wl, &counts))
		return false;
	if (counts.damaged) {
		problem("%s is a write log that is damaged in %llu place%s", req->path,
			counts.damaged, PLURAL(counts.damaged));
		advice("`forebay writelog check %s` tells more. To lose what it holds: --force",
		       req->path);
		return false;
	}
	if (!counts.entries)
		return true;
	problem("%s is a write log that holds %llu write%s (%s) not yet on its origin", req->path,
		counts.entries, PLURAL(counts.entries), size_text(size, counts.bytes));
	log_origin(origin, wl->super.origin_id);
	advice("To keep that: forebay writelog create NAME ORIGIN %s, then forebay writelog remove NAME.%s%s",
	       req->path, *origin ? " The origin: " : "", origin);
	advice("To lose it: --force");
	return false;
}

/* Nobody's data is on the device, or the user doesn't care. */
static bool may_overwrite(const struct request *req, const struct device *dev)
{
	enum wl_error err;
	struct wl wl;

	if (req->force)
		return true;
	err = wl_open(&wl, dev->base, dev->size, WL_OPEN_READ_ONLY);
	if (!err && !holds_nothing_of_worth(req, &wl))
		return false;
	if (!unclaimed(dev))
		return false;
	if (err && err != WL_E_NOT_FORMATTED && err != WL_E_TOO_SMALL) {
		problem("%s: %s", req->path, wl_strerror(err));
		advice("To overwrite whatever is there: --force");
		return false;
	}
	return true;
}

static void report(const struct request *req, const struct wl *wl)
{
	char uuid[37], size[SIZE_TEXT], chunk[SIZE_TEXT];
	json_object *json;

	if (!req->json) {
		printf("%s: empty write log, %s in %u generations of %u chunks of %s, %s, UUID %s\n",
		       req->path, size_text(size, (u64)wl->nr_gens * wl->nr_chunks * wl->chunk_size),
		       wl->nr_gens, wl->nr_chunks, size_text(chunk, wl->chunk_size),
		       wl->data_crc ? "data checksums" : "no data checksums",
		       uuid_text(uuid, wl->super.uuid));
		return;
	}
	json = json_object_new_object();
	json_object_object_add(json, "device", json_object_new_string(req->path));
	log_describe(wl, NULL, json);
	print_json(json);
}

static enum exit_status make(const struct request *req, const struct device *dev)
{
	enum wl_error err;
	struct wl wl;

	pm_host_map(dev->base, dev->size);
	err = wl_format(dev->base, dev->size, &req->make);
	if (err == WL_E_GEOMETRY) {
		problem("%s has no room for such generations and chunks", req->path);
		advice("Choose fewer or smaller ones, or leave --generations and --chunk-size out.");
		return FAILED;
	}
	if (!err && !formatted(dev))
		return FAILED;
	if (!err)
		err = wl_open(&wl, dev->base, dev->size, WL_OPEN_READ_ONLY);
	if (err) {
		problem("%s: %s", req->path, wl_strerror(err));
		return FAILED;
	}
	report(req, &wl);
	return DONE;
}

static enum exit_status format(const struct verb *verb, int argc, char **argv)
{
	struct request req = { };
	enum exit_status status = parse(verb, argc, argv, &req);
	struct device dev;

	if (status)
		return status;
	if (!device_open(&dev, req.path, DEVICE_WRITE))
		return FAILED;
	status = usable(&dev) && may_overwrite(&req, &dev) ? make(&req, &dev) : FAILED;
	device_close(&dev);
	return status;
}

const struct verb verb_writelog_format = {
	.name = "writelog format",
	.arguments = "[--force] [--generations N] [--chunk-size BYTES] [--align BYTES] [--data-checksums] [--uuid UUID] [--json] DEVICE",
	.summary = "make an empty write log on persistent memory",
	.help = "Makes an empty write log on DEVICE: persistent memory in fsdax mode, like\n"
		"/dev/pmem0, or a file that is an image of such a device. Refuses a device that is\n"
		"in use, or that holds something: a file system, a cache, or writes that are not yet\n"
		"on their origin.\n"
		"\n"
		"  --force             overwrite whatever the device holds\n"
		"  --generations N     cut the log into N pieces, 2 to 4096, that are written back as a\n"
		"                      whole (default: 16, fewer on small devices)\n"
		"  --chunk-size BYTES  of the pieces that one writer fills: a multiple of 4096, 16384 to\n"
		"                      16777216 (default: a 32nd of a generation)\n"
		"  --align BYTES       of data that are a multiple of it (default: 4096, so that\n"
		"                      they can be written back without a copy; less saves space\n"
		"                      where writes are small)\n"
		"  --data-checksums    verify data when they are replayed; costs time on each write\n"
		"  --uuid UUID         name the log; default: a random one\n"
		"  --json              say in JSON what was made\n",
	.options = options,
	.run = format,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog format: makes an empty write log on a device, unless the device can't hold one or holds
 * other data.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <uuid.h>

#include "base/json.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/verb.h"
#include "device/fitness.h"
#include "device/log.h"

/* The smallest chunk that the target takes (dwl_device_open()). */
#define MIN_CHUNK_SIZE	(4 * WL_PAGE_SIZE)

/* The largest log that the target takes (dwl_map_log()). */
#define MAX_LOG_SIZE		((u64)WL_DATA_ALIGN << 32)

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

/* Parses a number from @min to @max that @unit divides. */
static bool parse_number(const char *text, u32 min, u32 max, u32 unit, u32 *number)
{
	unsigned long long n;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoull(text, &end, 10);
	if (*end || n < min || n > max || n % unit)
		return false;
	*number = n;
	return true;
}

/* Returns what is wrong with the option, or NULL. */
static const char *take_option(struct request *req, int option)
{
	switch (option) {
	case OPT_FORCE:
		req->force = true;
		break;
	case OPT_GENERATIONS:
		if (!parse_number(optarg, 2, WL_MAX_GENERATIONS, 1, &req->make.nr_gens))
			return "--generations needs a number from 2 to 4096";
		break;
	case OPT_CHUNK_SIZE:
		if (!parse_number(optarg, MIN_CHUNK_SIZE, WL_MAX_CHUNK_SIZE, WL_PAGE_SIZE,
				  &req->make.chunk_size))
			return "--chunk-size needs a multiple of 4096 from 16384 to 16777216";
		break;
	case OPT_ALIGN:
		if (!parse_number(optarg, WL_DATA_ALIGN, WL_PAGE_SIZE, WL_DATA_ALIGN, &req->make.align) ||
		    req->make.align & (req->make.align - 1))
			return "--align needs 256, 512, 1024, 2048 or 4096";
		break;
	case OPT_DATA_CHECKSUMS:
		req->make.data_crc = true;
		break;
	case OPT_UUID:
		if (uuid_parse(optarg, req->make.uuid) || uuid_is_null(req->make.uuid))
			return "--uuid needs a UUID";
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
		return usage_problem(verb, "expected one device");
	req->path = argv[optind];
	return DONE;
}

/* An unformatted device, or an empty write log, may be overwritten. */
static bool may_overwrite(const struct request *req, const struct device *dev)
{
	enum wl_error err;
	struct wl wl;

	err = wl_open(&wl, dev->base, dev->size, WL_OPEN_READ_ONLY);
	if (err == WL_E_NOT_FORMATTED || err == WL_E_TOO_SMALL)
		err = 0;
	return device_may_format(dev, req->force, err ? wl_strerror(err) : NULL);
}

/*
 * Less than a chunk in each generation, and the space before the data, always stay unused: not worth a
 * message.
 */
static void say_unused(const struct request *req, const struct wl *wl, u64 size)
{
	u64 used = (u64)wl->nr_gens * wl->nr_chunks * wl->chunk_size;
	u64 rest = (u64)wl->nr_gens * wl->chunk_size + wl->data - wl->base;
	char text[SIZE_TEXT], total[SIZE_TEXT];

	if (used + rest >= size)
		return;
	fflush(stdout);
	problem("%s of the %s of %s are not used", size_text(text, size - used), size_text(total, size),
		req->path);
	advice("A generation has at most 16384 chunks and 16 GiB: choose more generations, or larger chunks.");
}

static void report(const struct request *req, const struct wl *wl)
{
	char uuid[37], size[SIZE_TEXT], chunk[SIZE_TEXT];
	json_object *json;

	if (!req->json) {
		print_of(req->path,
			 "empty write log, %s in %u generations of %u chunks of %s, %s, UUID %s\n",
			 size_text(size, (u64)wl->nr_gens * wl->nr_chunks * wl->chunk_size), wl->nr_gens,
			 wl->nr_chunks, size_text(chunk, wl->chunk_size),
			 wl->data_crc ? "data checksums" : "no data checksums",
			 uuid_text(uuid, wl->super.uuid));
		return;
	}
	json = json_object_new_object();
	json_add_text(json, "device", req->path);
	log_describe(wl, NULL, json);
	print_json(json);
}

static enum exit_status make(const struct request *req, const struct device *dev)
{
	struct progress progress;
	enum wl_error err;
	struct wl wl;

	if (dev->size > MAX_LOG_SIZE) {
		problem("%s has more than 1 TiB, and the target takes no larger log", req->path);
		advice("Make a namespace of that size: ndctl create-namespace -m fsdax --size=1T; or a dm-linear.");
		return FAILED;
	}
	/* One line is written in each chunk. Read-ahead would read, and then write, megabytes around it. */
	madvise(dev->base, dev->size, MADV_RANDOM);
	err = wl_format_fits(dev->size, &req->make);
	if (!err && !device_wipe(dev))
		return FAILED;
	if (!err) {
		progress_begin(&progress, req->path, "being formatted");
		err = wl_format(dev->base, dev->size, &req->make);
		progress_end(&progress);
	}
	if (err == WL_E_GEOMETRY) {
		problem("%s has no room for such generations and chunks", req->path);
		advice("Choose fewer or smaller ones, or leave --generations and --chunk-size out.");
		return FAILED;
	}
	if (!err && !device_formatted(dev))
		return FAILED;
	if (!err)
		err = wl_open(&wl, dev->base, dev->size, WL_OPEN_READ_ONLY);
	if (err) {
		problem("%s: %s", req->path, wl_strerror(err));
		return FAILED;
	}
	report(req, &wl);
	say_unused(req, &wl, dev->size);
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
	status = may_overwrite(&req, &dev) ? make(&req, &dev) : FAILED;
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
		"                      whole (default: 16, fewer on small devices, and on large ones as\n"
		"                      many as it takes to use all of it: each has at most 16 GiB)\n"
		"  --chunk-size BYTES  of the pieces that one writer fills: a multiple of 4096, 16384 to\n"
		"                      16777216 (default: a 32nd of a generation)\n"
		"  --align BYTES       of data that are a multiple of it (default: 4096, so that\n"
		"                      they can be written back without a copy; less saves space\n"
		"                      where writes are small)\n"
		"  --data-checksums    verify data when they are replayed; costs time on each write\n"
		"  --uuid UUID         name the log; default: a random one\n"
		"  --json              say in JSON what was made\n",
	.options = options,
	.destroys = true,
	.run = format,
};

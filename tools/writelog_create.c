// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog create: puts a write log in front of an origin, as a mapped
 * device. What was in the log is replayed by the target.
 *
 * Names of disks change between boots, so the log keeps what the disk says of
 * itself (wwid), or the UUID of a mapped device; the target refuses another one.
 */
#include <stdlib.h>
#include <uuid.h>

#include "../core/host_pm.h"
#include "fitness.h"
#include "message.h"
#include "sysfs.h"
#include "verb.h"
#include "writelog_log.h"
#include "writelog_target.h"

enum { OPT_OPTION = 1, OPT_ANY_ORIGIN };

static const struct option options[] = {
	{ "option", required_argument, NULL, OPT_OPTION },
	{ "any-origin", no_argument, NULL, OPT_ANY_ORIGIN },
	OPTION_HELP,
	{ }
};

struct request {
	const char *name, *origin, *log;
	bool any_origin;
	struct pairs pairs;
};

static bool parse(const struct verb *verb, int argc, char **argv, struct request *req)
{
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_ANY_ORIGIN)
			req->any_origin = true;
		else if (!pairs_take(verb, &req->pairs, optarg))
			return false;
	}
	if (argc - optind != 3) {
		usage_problem(verb, "want a name, an origin and a log");
		return false;
	}
	req->name = argv[optind];
	req->origin = argv[optind + 1];
	req->log = argv[optind + 2];
	return true;
}

/* The beginning, for people, and a digest of all: what tells two disks apart may stand anywhere. */
static void shorten(char *text)
{
	size_t kept = WL_ORIGIN_ID_SIZE - UUID_STR_LEN;		/* which counts the terminator: a dash here */
	uuid_t digest;

	uuid_generate_sha1(digest, (const uuid_t){ }, text, strlen(text));
	text[kept] = '-';
	uuid_unparse_lower(digest, text + kept + 1);
}

/* What stays with the device, as text; of a partition with its number. */
static void identify(dev_t rdev, char id[WL_ORIGIN_ID_SIZE + 1])
{
	char text[256] = "", part[16] = "";
	size_t len;

	if (!disk_attribute(rdev, "dm/uuid", text, sizeof(text)) || !*text)
		if (!disk_attribute(rdev, "wwid", text, sizeof(text)))
			disk_attribute(rdev, "device/wwid", text, sizeof(text));
	for (char *c = text; *c; c++)
		if (*c == ' ')
			*c = '_';
	disk_attribute(rdev, "partition", part, sizeof(part));
	len = strlen(text);
	if (len && *part)
		len += snprintf(text + len, sizeof(text) - len, "-part%s", part);
	if (len > WL_ORIGIN_ID_SIZE)
		shorten(text);
	snprintf(id, WL_ORIGIN_ID_SIZE + 1, "%.*s", WL_ORIGIN_ID_SIZE, text);
}

static bool add_identity(struct request *req, const char *id)
{
	char hex[2 * WL_ORIGIN_ID_SIZE + 1] = "";

	for (size_t i = 0; id[i]; i++)
		sprintf(hex + 2 * i, "%02x", (unsigned char)id[i]);
	return !*hex || pairs_add(&req->pairs, "origin_id", 9, hex);
}

static bool log_is_empty(const struct wl *wl)
{
	for (u32 gen = 0; gen < wl->nr_gens; gen++) {
		struct wl_gen_info info;

		if (wl_gen_read(wl, gen, &info) || info.state != WL_GEN_FREE)
			return false;
	}
	return true;
}

/* Said here in more words than the kernel has. */
static bool fits_together(const struct request *req, const struct wl *wl, const u8 *id)
{
	char was[2 * WL_ORIGIN_ID_SIZE + 1], is[2 * WL_ORIGIN_ID_SIZE + 1];

	if (log_is_empty(wl) || !wl_is_bound(wl) || wl_bound_to(wl, id) || req->any_origin)
		return true;
	problem("%s holds writes to another origin than %s", req->log, req->origin);
	advice("It was used with %s; this is %s.", log_origin(was, wl->super.origin_id),
	       log_origin(is, id));
	advice("If that is the same disk under another name: --any-origin");
	return false;
}

/* Says in the log which origin it belongs to from now on. */
static bool rebind(const struct request *req, const struct device *dev, u64 sectors, const u8 *id)
{
	enum wl_error err;
	struct wl wl;

	pm_host_map(dev->base, dev->size);
	err = wl_open(&wl, dev->base, dev->size, 0);
	if (!err)
		wl_bind(&wl, sectors, id);
	if (err || pm_host_error())
		problem("cannot bind %s to %s: %s", req->log, req->origin,
			err ? wl_strerror(err) : strerror(pm_host_error()));
	return !err && !pm_host_error();
}

/* Is there a log that may be used with this origin? Made to be, if asked. */
static bool prepare_log(const struct request *req, u64 sectors, const char *id)
{
	u8 padded[WL_ORIGIN_ID_SIZE] = "";
	struct device dev;
	struct wl wl;
	bool good;

	memcpy(padded, id, strlen(id));
	if (!device_open(&dev, req->log, req->any_origin ? DEVICE_WRITE : 0))
		return false;
	good = usable(&dev) && log_open(&wl, &dev) && fits_together(req, &wl, padded);
	if (good && !dev.is_disk) {
		problem("%s is an image; a log in use is a block device", req->log);
		good = false;
	}
	if (good && req->any_origin && !wl_bound_to(&wl, padded))
		good = rebind(req, &dev, sectors, padded);
	device_close(&dev);
	return good;
}

static enum exit_status create(const struct verb *verb, int argc, char **argv)
{
	char parameters[MAPPED_TEXT], id[WL_ORIGIN_ID_SIZE + 1] = "";
	struct request req = { };
	uint64_t sectors;
	dev_t rdev;

	if (!parse(verb, argc, argv, &req))
		return USAGE;
	if (!mapped_below(req.origin, "an origin", &sectors, &rdev))
		return FAILED;
	identify(rdev, id);
	if (!prepare_log(&req, sectors, id))
		return FAILED;
	if (!add_identity(&req, id))
		return usage_problem(verb, "too many options");
	snprintf(parameters, sizeof(parameters), "%s %s %u%s", req.origin, req.log, req.pairs.words,
		 req.pairs.text);
	if (!mapped_create(req.name, sectors, WRITELOG_TARGET, parameters))
		return FAILED;
	printf("/dev/mapper/%s: %s behind the write log on %s\n", req.name, req.origin, req.log);
	return DONE;
}

const struct verb verb_writelog_create = {
	.name = "writelog create",
	.arguments = "[--option KEY=VALUE]... [--any-origin] NAME ORIGIN LOG",
	.summary = "put a write log in front of a block device",
	.help = "Makes /dev/mapper/NAME: the block device ORIGIN, whose writes are made durable in the\n"
		"write log on LOG and written to ORIGIN later. What LOG still holds is replayed.\n"
		"\n"
		"  --option KEY=VALUE  an option of the target, see forebay(8); may be repeated\n"
		"  --any-origin        though the log was used with another one: its writes go to\n"
		"                      this\n",
	.options = options,
	.run = create,
};

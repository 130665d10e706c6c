// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog create: puts a write log in front of an origin, as a mapped
 * device. What was in the log is replayed by the target.
 *
 * Names of disks change between boots, so the log keeps what the disk says of
 * itself (wwid), or the UUID of a mapped device; the target refuses another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

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

#define PARAMETERS	4096

struct request {
	const char *name, *origin, *log;
	bool any_origin;
	char pairs[PARAMETERS / 2];	/* " key value" ... */
	unsigned int words;
};

static bool add_pair(struct request *req, const char *key, int key_len, const char *value)
{
	size_t at = strlen(req->pairs);
	int len = snprintf(req->pairs + at, sizeof(req->pairs) - at, " %.*s %s", key_len, key, value);

	req->words += 2;
	return len < (int)(sizeof(req->pairs) - at);
}

/* "key=value", neither with a blank. */
static bool take_pair(struct request *req, const char *pair)
{
	const char *equals = strchr(pair, '=');

	return equals && equals > pair && equals[1] && !strpbrk(pair, " \t\n") &&
	       add_pair(req, pair, equals - pair, equals + 1);
}

static bool parse(const struct verb *verb, int argc, char **argv, struct request *req)
{
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_ANY_ORIGIN) {
			req->any_origin = true;
		} else if (!take_pair(req, optarg)) {
			usage_problem(verb, "--option %s: want KEY=VALUE", optarg);
			return false;
		}
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
	/* The end tells devices of one maker apart. */
	snprintf(id, WL_ORIGIN_ID_SIZE + 1, "%s", len > WL_ORIGIN_ID_SIZE ?
		 text + len - WL_ORIGIN_ID_SIZE : text);
}

static bool add_identity(struct request *req, const char *id)
{
	char hex[2 * WL_ORIGIN_ID_SIZE + 1] = "";

	for (size_t i = 0; id[i]; i++)
		sprintf(hex + 2 * i, "%02x", (unsigned char)id[i]);
	return !*hex || add_pair(req, "origin_id", 9, hex);
}

/* Of a block device that nobody uses: the sectors, and its number. */
static bool measure(const char *path, u64 *sectors, dev_t *rdev)
{
	int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	struct stat st;
	u64 bytes;
	bool good;

	if (fd < 0 && errno == EBUSY) {
		problem("%s is in use", path);
		advice("`lsblk %s` may show by what. Unmount it first.", path);
		return false;
	}
	good = fd >= 0 && !fstat(fd, &st) && !ioctl(fd, BLKGETSIZE64, &bytes);
	if (!good)
		problem("%s cannot be an origin: %s", path, strerror(errno));
	else
		*rdev = st.st_rdev;
	if (fd >= 0)
		close(fd);
	*sectors = good ? bytes >> WL_SECTOR_SHIFT : 0;
	return good;
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
	char parameters[PARAMETERS], id[WL_ORIGIN_ID_SIZE + 1] = "";
	struct request req = { };
	u64 sectors;
	dev_t rdev;

	if (!parse(verb, argc, argv, &req))
		return USAGE;
	if (!measure(req.origin, &sectors, &rdev))
		return FAILED;
	identify(rdev, id);
	if (!prepare_log(&req, sectors, id))
		return FAILED;
	if (!add_identity(&req, id))
		return usage_problem(verb, "too many options");
	snprintf(parameters, sizeof(parameters), "%s %s %u%s", req.origin, req.log, req.words, req.pairs);
	if (!target_create(req.name, sectors, parameters))
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

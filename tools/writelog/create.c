// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog create: puts a write log in front of an origin, as a mapped device. The target replays
 * what the log holds.
 *
 * A log that holds writes belongs to one origin. It knows the origin by a name (origin.c), or by its size
 * if the disk has no name; and by a fingerprint of its first blocks. Both this verb and the target refuse
 * another origin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/message.h"
#include "base/shell.h"
#include "device/fitness.h"
#include "device/log.h"
#include "mapped/options.h"
#include "origin.h"

/* The largest block size that the target takes. */
#define MAX_BLOCK_SIZE	4096UL

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

/* How a log knows its origin. */
struct binding {
	uint64_t sectors;
	u8 id[WL_ORIGIN_ID_SIZE];	/* all zero: no name */
};

#define BINDING_TEXT	(2 * WL_ORIGIN_ID_SIZE + 40)

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
		usage_problem(verb, "expected a name, an origin and a log");
		return false;
	}
	req->name = mapped_name(argv[optind]);
	req->origin = argv[optind + 1];
	req->log = argv[optind + 2];
	return true;
}

/* A name of zeros is passed on, too: otherwise the log would keep the name of an earlier origin. */
static bool add_name(struct pairs *pairs, const u8 *id)
{
	char hex[2 * WL_ORIGIN_ID_SIZE + 1];
	size_t len = WL_ORIGIN_ID_SIZE;

	while (len > 1 && !id[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", id[i]);
	return pairs_add(pairs, "origin_id", hex);
}

/* A damaged generation counts as used, since it may hold writes. */
static u32 generations_used(const struct wl *wl)
{
	u32 used = 0;

	for (u32 gen = 0; gen < wl->nr_gens; gen++) {
		struct wl_gen_info info;

		used += wl_gen_read(wl, gen, &info) || info.state != WL_GEN_FREE;
	}
	return used;
}

static bool has_name(const struct binding *binding)
{
	return memchr_inv(binding->id, 0, sizeof(binding->id));
}

static const char *describe(const struct binding *binding, char text[BINDING_TEXT])
{
	char name[2 * WL_ORIGIN_ID_SIZE + 1] = "a disk without a name";

	if (has_name(binding))
		log_origin(name, binding->id);
	snprintf(text, BINDING_TEXT, "%s (%lu sectors)", name, binding->sectors);
	return text;
}

/* The target checks the same; the messages here say more. Without a name, only the size is compared. */
static bool fits_together(const struct request *req, const struct binding *was, const struct binding *is)
{
	char was_text[BINDING_TEXT], is_text[BINDING_TEXT];

	if (!was->sectors || req->any_origin)
		return true;
	if (has_name(was) && !memcmp(was->id, is->id, sizeof(is->id)))
		return true;
	if (!has_name(was) && was->sectors == is->sectors) {
		problem("%s holds writes to a disk that it has no name of", req->log);
		advice("%s has the size of that disk, and is taken for it.%s", req->origin,
		       has_name(is) ? " From now on the log knows its name." : "");
		return true;
	}
	problem("%s holds writes to another origin than %s", req->log, req->origin);
	advice("It was used with %s; this is %s.", describe(was, was_text), describe(is, is_text));
	advice("If that is the same disk under another name: --any-origin");
	return false;
}

/* The last block_size given, as the target takes it; 0: none was given. */
static uint64_t block_asked_for(const char *options)
{
	static const char key[] = " block_size ";
	uint64_t block = 0;

	while ((options = strstr(options, key))) {
		options += strlen(key);
		block = strtoull(options, NULL, 10);
	}
	return block;
}

/* The origin must consist of whole blocks. The default, its logical block size, always fits. */
static bool fits_in_blocks(const struct request *req, const struct binding *is)
{
	uint64_t bytes = is->sectors << 9, block = block_asked_for(req->pairs.text), fits = bytes & -bytes;

	/* The target refuses an invalid block size. */
	if (block & (block - 1) || !block || bytes % block == 0)
		return true;
	problem("%s has %lu bytes, which is no multiple of block_size=%lu", req->origin, bytes, block);
	advice("The largest that fits: --option block_size=%lu. Or make the device, a partition say, shorter.",
	       fits < MAX_BLOCK_SIZE ? fits : MAX_BLOCK_SIZE);
	return false;
}

static void say_replay(const struct request *req, const struct wl *wl, u32 generations)
{
	char size[SIZE_TEXT];

	print_of(req->log, "replaying what it holds, at most %s; this may take a while\n",
		 size_text(size, (u64)generations * wl->nr_chunks * wl->chunk_size));
	fflush(stdout);
}

/* The target checks this, too. If the origin can't be read, the target reports that. */
static bool is_unchanged(const struct request *req, const struct wl *wl, const struct binding *is)
{
	uint64_t sectors = le64_to_cpu(wl->super.origin_sectors);
	u32 was = wl_fingerprint(wl), now;

	if (req->any_origin || was == WL_FINGERPRINT_NONE || was == WL_FINGERPRINT_CHANGING ||
	    wl_fingerprint_blocks(sectors) > wl_fingerprint_blocks(is->sectors) ||
	    !origin_fingerprint(wl, req->origin, sectors, &now) || now == was)
		return true;
	problem("%s holds writes to an origin that began with other data than %s", req->log, req->origin);
	advice("It is another disk, or it was changed without its log: mounted, checked, formatted.");
	advice("To write to it what the log holds, which may destroy what is there now: --any-origin");
	advice("To give up what the log holds: forebay writelog format --force %s", in_shell(req->log));
	return false;
}

/* Returns whether there is a log that may be used with this origin. */
static bool look_at_log(const struct request *req, const struct binding *is, dev_t *rdev)
{
	struct binding was = { };
	struct device dev;
	struct wl wl;
	u32 generations = 0;
	bool good;

	if (!device_open(&dev, req->log, 0))
		return false;
	good = device_usable(&dev) && log_open(&wl, &dev);
	if (good)
		generations = generations_used(&wl);
	if (generations) {
		was.sectors = le64_to_cpu(wl.super.origin_sectors);
		memcpy(was.id, wl.super.origin_id, sizeof(was.id));
	}
	good = good && fits_together(req, &was, is) && (!generations || is_unchanged(req, &wl, is));
	if (good && !dev.is_disk) {
		problem("%s is an image; a log in use is a block device", req->log);
		good = false;
	}
	if (good && generations)
		say_replay(req, &wl, generations);
	*rdev = dev.rdev;
	device_close(&dev);
	return good;
}

static enum exit_status create(const struct verb *verb, int argc, char **argv)
{
	struct binding is = { };
	char parameters[MAPPED_TEXT];
	struct request req = { };
	dev_t origin, log;

	if (!parse(verb, argc, argv, &req))
		return USAGE;
	if (!mapped_may_create(req.name) || !mapped_below(req.origin, "an origin", &is.sectors, &origin) ||
	    !fits_in_blocks(&req, &is))
		return FAILED;
	origin_name(req.origin, origin, is.id);
	if (!look_at_log(&req, &is, &log))
		return FAILED;
	if (!add_name(&req.pairs, is.id) || (req.any_origin && !pairs_add(&req.pairs, "any_origin", "1")))
		return usage_problem(verb, "too many options");
	/* Device numbers, since the paths may lead to other devices by now than those checked above. */
	snprintf(parameters, sizeof(parameters), "%u:%u %u:%u %u%s", major(origin), minor(origin), major(log),
		 minor(log), req.pairs.words, req.pairs.text);
	if (!mapped_create(req.name, is.sectors, &writelog_kind, parameters))
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
		"  --option KEY=VALUE  an option of the target; may be repeated\n"
		"  --any-origin        even if the log was used with another one, or this was changed\n"
		"                      without the log since: the log's writes go to this\n",
	.options = options,
	.kind = &writelog_kind,
	.keys = KEYS_ALL,
	.run = create,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog create: puts a write log in front of an origin, as a mapped
 * device. What was in the log is replayed by the target.
 *
 * A log that holds writes is for one origin, which it knows by its name
 * (writelog_origin.c), or, where there is none, by its size. Another one is refused here,
 * by name in the target too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "../core/host_pm.h"
#include "fitness.h"
#include "message.h"
#include "options.h"
#include "writelog_log.h"
#include "writelog_origin.h"
#include "writelog_target.h"

/* That the target takes. */
#define LARGEST_BLOCK	4096UL

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

/* Which origin a log is for. */
struct binding {
	uint64_t sectors;
	u8 id[WL_ORIGIN_ID_SIZE];	/* all zero: it has no name */
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
		usage_problem(verb, "want a name, an origin and a log");
		return false;
	}
	req->name = mapped_name(argv[optind]);
	req->origin = argv[optind + 1];
	req->log = argv[optind + 2];
	return true;
}

/* A name of zeros is passed on too: the log shall not go by that of the origin before. */
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

/* A damaged one may hold something. */
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

/* Said here in more words than the kernel has. Without a name only the size tells. */
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

/* Of several the last, as for the target; 0: none was given. */
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

/* An index of larger blocks needs whole ones. The default is what the device itself consists of. */
static bool fits_in_blocks(const struct request *req, const struct binding *is)
{
	uint64_t bytes = is->sectors << 9, block = block_asked_for(req->pairs.text), fits = bytes & -bytes;

	/* What is no block size the target refuses. */
	if (block & (block - 1) || !block || bytes % block == 0)
		return true;
	problem("%s has %lu bytes, which is no multiple of block_size=%lu", req->origin, bytes, block);
	advice("The largest that fits: --option block_size=%lu. Or make the device, a partition say, shorter.",
	       fits < LARGEST_BLOCK ? fits : LARGEST_BLOCK);
	return false;
}

static void say_replay(const struct request *req, const struct wl *wl, u32 generations)
{
	char size[SIZE_TEXT];

	printf("%s: replaying what it holds, at most %s; this may take a while\n", req->log,
	       size_text(size, (u64)generations * wl->nr_chunks * wl->chunk_size));
	fflush(stdout);
}

/* Is there a log that may be used with this origin? Whose writes it holds; of an empty one all zero. */
static bool look_at_log(const struct request *req, const struct binding *is, struct binding *was, dev_t *rdev)
{
	struct device dev;
	struct wl wl;
	u32 generations = 0;
	bool good;

	if (!device_open(&dev, req->log, 0))
		return false;
	good = usable(&dev) && log_open(&wl, &dev);
	if (good)
		generations = generations_used(&wl);
	if (generations) {
		was->sectors = le64_to_cpu(wl.super.origin_sectors);
		memcpy(was->id, wl.super.origin_id, sizeof(was->id));
	}
	good = good && fits_together(req, was, is);
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

/* Says in the log which origin it belongs to from now on. */
static bool bind_log(const char *path, const struct binding *to)
{
	enum wl_error err;
	struct device dev;
	bool good;
	struct wl wl;

	if (!device_open(&dev, path, DEVICE_WRITE))
		return false;
	pm_host_map(dev.base, dev.size);
	err = wl_open(&wl, dev.base, dev.size, 0);
	if (!err)
		wl_bind(&wl, to->sectors, to->id);
	good = !err && !pm_host_error();
	if (!good)
		problem("cannot say in %s which origin it is for: %s", path,
			err ? wl_strerror(err) : strerror(pm_host_error()));
	device_close(&dev);
	return good;
}

/*
 * The kernel refuses a log that is another origin's, so it is bound to this one
 * before; and to that one again, if the kernel has something else against it.
 */
static bool map_any(const struct request *req, const char *parameters, const struct binding *is,
		    const struct binding *was)
{
	if (!bind_log(req->log, is))
		return false;
	if (mapped_create(req->name, is->sectors, &writelog_kind, parameters))
		return true;
	bind_log(req->log, was);
	return false;
}

static enum exit_status create(const struct verb *verb, int argc, char **argv)
{
	struct binding is = { }, was = { };
	char parameters[MAPPED_TEXT];
	struct request req = { };
	dev_t origin, log;
	bool good;

	if (!parse(verb, argc, argv, &req))
		return USAGE;
	if (!mapped_may_create(req.name) || !mapped_below(req.origin, "an origin", &is.sectors, &origin) ||
	    !fits_in_blocks(&req, &is))
		return FAILED;
	origin_name(req.origin, origin, is.id);
	if (!look_at_log(&req, &is, &was, &log))
		return FAILED;
	if (!add_name(&req.pairs, is.id))
		return usage_problem(verb, "too many options");
	/* Numbers: the devices that were looked at, whatever the paths have come to mean. */
	snprintf(parameters, sizeof(parameters), "%u:%u %u:%u %u%s", major(origin), minor(origin), major(log),
		 minor(log), req.pairs.words, req.pairs.text);
	if (req.any_origin && was.sectors)
		good = map_any(&req, parameters, &is, &was);
	else
		good = mapped_create(req.name, is.sectors, &writelog_kind, parameters);
	if (!good)
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
		"  --any-origin        though the log was used with another one: its writes go to\n"
		"                      this\n",
	.options = options,
	.kind = &writelog_kind,
	.keys = KEYS_ALL,
	.run = create,
};

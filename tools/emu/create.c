// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay emu create: makes a persistent-memory device of ordinary memory. With --backing, it also makes a
 * cache on the device, and prints the command that mounts the cache over the storage.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/shell.h"
#include "base/size.h"
#include "base/verb.h"
#include "cache/format.h"
#include "sys/mounts.h"
#include "emu.h"

enum {
	OPT_SIZE = 1, OPT_BACKING, OPT_READ_DELAY, OPT_WRITE_DELAY, OPT_BANDWIDTH, OPT_PERSISTENCE, OPT_NODE,
	OPT_TRACK, OPT_JSON
};

static const struct option options[] = {
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "backing", required_argument, NULL, OPT_BACKING },
	{ "read-delay-ns", required_argument, NULL, OPT_READ_DELAY },
	{ "write-delay-ns", required_argument, NULL, OPT_WRITE_DELAY },
	{ "bandwidth", required_argument, NULL, OPT_BANDWIDTH },
	{ "persistence", required_argument, NULL, OPT_PERSISTENCE },
	{ "node", required_argument, NULL, OPT_NODE },
	{ "track", no_argument, NULL, OPT_TRACK },
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

/* The texts of this file have these limits as numbers. */
static_assert(FOREBAY_EMU_MAX_DELAY == 1000000);
static_assert(FOREBAY_EMU_MIN_BANDWIDTH == 1 << 20);

struct request {
	struct forebay_emu_create create;
	const char *backing;
	bool json;
};

static bool parse_persistence(const char *text, struct forebay_emu_create *create)
{
	if (!strcmp(text, "cpu"))
		create->flags |= FOREBAY_EMU_CPU_CACHES;
	return !strcmp(text, "cpu") || !strcmp(text, "mem-ctrl");
}

static bool parse_node(const char *text, struct forebay_emu_create *create)
{
	__u64 node;

	if (!size_parse(text, &node) || node > INT_MAX)
		return false;
	create->node = node;
	return true;
}

static bool parse_delay(const char *text, __u64 *delay)
{
	return size_parse(text, delay) && *delay <= FOREBAY_EMU_MAX_DELAY;
}

/* Returns which value the option needs, if it has another one; else NULL. */
static const char *take_option(int option, struct request *req)
{
	struct forebay_emu_create *create = &req->create;

	switch (option) {
	case OPT_SIZE:
		return size_parse(optarg, &create->bytes) && create->bytes && create->bytes % 4096 == 0 ?
		       NULL : "--size needs a multiple of 4096 bytes";
	case OPT_BACKING:
		req->backing = optarg;
		return NULL;
	case OPT_READ_DELAY:
		return parse_delay(optarg, &create->read_delay_ns) ?
		       NULL : "--read-delay-ns needs a number up to 1000000";
	case OPT_WRITE_DELAY:
		return parse_delay(optarg, &create->write_delay_ns) ?
		       NULL : "--write-delay-ns needs a number up to 1000000";
	case OPT_BANDWIDTH:
		return size_parse(optarg, &create->bandwidth) &&
		       create->bandwidth >= FOREBAY_EMU_MIN_BANDWIDTH ?
		       NULL : "--bandwidth needs bytes a second, at least 1m";
	case OPT_PERSISTENCE:
		return parse_persistence(optarg, create) ? NULL : "--persistence needs mem-ctrl or cpu";
	case OPT_NODE:
		return parse_node(optarg, create) ? NULL : "--node needs a number";
	case OPT_TRACK:
		create->flags |= FOREBAY_EMU_TRACK;
		return NULL;
	default:
		req->json = true;
		return NULL;
	}
}

static enum exit_status parse(const struct verb *verb, int argc, char **argv, struct request *req)
{
	int option;

	req->create.size = sizeof(req->create);
	req->create.node = -1;
	while ((option = next_option(verb, argc, argv)) != -1) {
		const char *needs = take_option(option, req);

		if (needs)
			return usage_problem(verb, "%s, not %s", needs, optarg);
	}
	if (!req->create.bytes)
		return usage_problem(verb, "expected --size, a multiple of 4096 bytes");
	if (optind != argc)
		return usage_problem(verb, "unexpected argument '%s'", argv[optind]);
	return DONE;
}

static enum exit_status say_failed(const struct request *req, int err)
{
	char size[SIZE_TEXT];

	if (err < 0)
		return FAILED;
	if (err == ENOMEM) {
		problem("there is no room for %s in memory%s", size_text(size, req->create.bytes),
			req->create.flags & FOREBAY_EMU_TRACK ? ", twice for --track" : "");
		advice("`free -m` shows how much is available. Choose a smaller --size.");
	} else if (err == EINVAL && req->create.node >= 0) {
		problem("there is no NUMA node %d", req->create.node);
		advice("`lscpu` shows the nodes.");
	} else {
		problem("cannot make the device: %s", strerror(err));
		advice("dmesg may say more.");
	}
	return FAILED;
}

/* The mount point of the storage, or NULL. */
static char *backing_mount(const char *backing)
{
	struct stat st;

	return stat(backing, &st) || !S_ISBLK(st.st_mode) ? NULL : mount_of_device(st.st_rdev, NULL);
}

static void report(const struct request *req, const char *device)
{
	char *lower = req->backing ? backing_mount(req->backing) : NULL;
	char size[SIZE_TEXT], mount[PATH_MAX];

	snprintf(mount, sizeof(mount), "mount -t forebay -o cache=%s,allow_volatile_cache %s MOUNTPOINT",
		 device, in_shell(lower ?: "LOWER"));
	if (req->json) {
		json_object *json = json_object_new_object();

		json_add_text(json, "device", device);
		json_add_number(json, "size", req->create.bytes);
		json_add_text(json, "mount", mount);
		print_json(json);
	} else {
		printf("%s: %s of ordinary memory; its contents go with the power\n", device,
		       size_text(size, req->create.bytes));
		if (!req->backing)
			printf("To use it:\n    forebay format %s\n", device);
		else if (lower)
			puts("To use it:");
		else
			printf("To use it, mount %s at LOWER; then:\n", in_shell(req->backing));
		printf("    %s\n", mount);
	}
	free(lower);
}

/* The kernel clears all of the memory. */
static int create_device(struct request *req)
{
	char size[SIZE_TEXT], what[SIZE_TEXT + 16];
	struct progress progress;
	int err;

	snprintf(what, sizeof(what), "%s of memory", size_text(size, req->create.bytes));
	progress_begin(&progress, what, "being prepared");
	err = emu_control(FOREBAY_EMU_CREATE, &req->create);
	progress_end(&progress);
	return err;
}

static bool is_block_device(const char *path)
{
	struct stat st;
	int err = stat(path, &st) ? errno : 0;

	if (!err && S_ISBLK(st.st_mode))
		return true;
	if (err)
		problem("%s cannot be the backing: %s", path, strerror(err));
	else
		problem("%s is not a block device", path);
	advice("--backing names the storage behind the cache, such as /dev/nvme0n1.");
	return false;
}

static enum exit_status create(const struct verb *verb, int argc, char **argv)
{
	struct request req = { };
	enum exit_status status = parse(verb, argc, argv, &req);
	char device[64];
	int err;

	if (status)
		return status;
	if (req.backing && !is_block_device(req.backing))
		return FAILED;
	err = create_device(&req);
	if (err)
		return say_failed(&req, err);
	snprintf(device, sizeof(device), "/dev/" EMU_DISK "%u", req.create.index);
	if (req.backing && !format_cache(device)) {
		emu_control(FOREBAY_EMU_REMOVE, (void *)(uintptr_t)req.create.index);
		return FAILED;
	}
	report(&req, device);
	return DONE;
}

const struct verb verb_emu_create = {
	.name = "emu create",
	.arguments = "--size SIZE [--backing DEVICE] [OPTION]...",
	.summary = "make persistent memory of ordinary memory",
	.help = "Makes /dev/forebay-emuN: a persistent-memory device made of ordinary memory, for\n"
		"trying Forebay out on any machine. Its contents go with the power.\n"
		"\n"
		"  --size SIZE         bytes, or with k, m, g or t behind the number\n"
		"  --backing DEVICE    make a cache on it, and say how to mount that in front of DEVICE\n"
		"  --read-delay-ns N   nanoseconds added to each copy that the kernel makes out of it,\n"
		"                      at most 1000000\n"
		"  --write-delay-ns N  the same of copies into it\n"
		"  --bandwidth SIZE    of these copies, bytes a second, at least 1m\n"
		"  --persistence WHERE mem-ctrl: a store is durable once it is flushed (the default);\n"
		"                      cpu: at once, since CPU caches are durable too\n"
		"  --node N            take the memory of this NUMA node\n"
		"  --track             keep what would be durable, for `forebay emu cut`; this takes\n"
		"                      twice the memory\n"
		"  --json              say in JSON what was made\n",
	.options = options,
	.run = create,
};

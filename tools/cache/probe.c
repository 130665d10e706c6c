// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay probe: says whether a device is a cache or a write log, and its UUID. The rules in
 * packaging/udev make links in /dev/disk/by-uuid of the output.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/verb.h"
#include "device/identity.h"

enum { OPT_UDEV = 1, OPT_JSON };

static const struct option options[] = {
	{ "udev", no_argument, NULL, OPT_UDEV },
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

/* The properties that udev's own probe sets. A UUID needs no encoding. */
static void print_properties(const struct identity *identity)
{
	printf("ID_FS_TYPE=%s\nID_FS_VERSION=%u\nID_FS_USAGE=other\nID_FS_UUID=%s\nID_FS_UUID_ENC=%s\n",
	       identity->type, identity->version, identity->uuid, identity->uuid);
}

static void report(const char *path, const struct identity *identity, bool json)
{
	bool is_cache = !strcmp(identity->type, TYPE_CACHE);
	char size[SIZE_TEXT];
	json_object *object;

	if (!json) {
		print_of(path, "%s, UUID %s", is_cache ? "cache" : "write log", identity->uuid);
		if (identity->names_size)
			printf(", name log of %s", size_text(size, identity->names_size));
		putchar('\n');
		return;
	}
	object = json_object_new_object();
	json_add_text(object, "device", path);
	json_add_text(object, "type", identity->type);
	json_add_text(object, "uuid", identity->uuid);
	json_add_number(object, "version", identity->version);
	if (is_cache)
		json_add_number(object, "names_size", identity->names_size);
	print_json(object);
}

static enum exit_status probe(const struct verb *verb, int argc, char **argv)
{
	struct identity identity;
	bool udev = false, json = false;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		udev = udev || option == OPT_UDEV;
		json = json || option == OPT_JSON;
	}
	if (argc - optind != 1)
		return usage_problem(verb, "expected one device or image");
	if (!identify(argv[optind], &identity)) {
		problem("cannot read %s: %s", argv[optind],
			identity.why ?: strerror(errno));
		return FAILED;
	}
	if (udev && identity.type)
		print_properties(&identity);
	else if (identity.type)
		report(argv[optind], &identity, json);
	else if (!udev)
		problem("%s: %s", argv[optind], identity.why);
	return identity.type || udev ? DONE : FAILED;
}

const struct verb verb_probe = {
	.name = "probe",
	.arguments = "[--udev] [--json] DEVICE",
	.summary = "say whether a device is a cache or a write log",
	.help = "Says whether DEVICE, or the image of one, is a cache or a write log, and its UUID.\n"
		"Reads its superblocks alone; the device may be in use. Exit status 8: it is neither.\n"
		"\n"
		"  --udev              as properties for udev: ID_FS_TYPE=... and so on; status 0 and\n"
		"                      no output for a device that is neither\n"
		"  --json              in JSON\n",
	.options = options,
	.run = probe,
};

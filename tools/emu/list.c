// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay emu list: shows the emulated devices.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/message.h"
#include "base/verb.h"
#include "sys/mounts.h"
#include "sys/sysfs.h"
#include "emu.h"

enum { OPT_JSON = 1 };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

static uint64_t number(const char *disk, const char *attribute)
{
	char path[PATH_MAX], text[32] = "";

	kernel_read(kernel_path(path, "/sys/block/%s/%s", disk, attribute), text, sizeof(text));
	return strtoull(text, NULL, 10);
}

static bool is_mounted(const char *disk)
{
	char path[PATH_MAX], *folder;
	struct stat st;
	bool mounted;

	snprintf(path, sizeof(path), "/dev/%s", disk);
	folder = stat(path, &st) ? NULL : mount_of_device(st.st_rdev, NULL);
	mounted = folder;
	free(folder);
	return mounted;
}

static bool in_use(const char *disk)
{
	uint64_t pages;

	return cache_attribute(disk, "pages_total", &pages) || disk_holder(disk, NULL, NULL) ||
	       is_mounted(disk);
}

static json_object *describe(const char *disk)
{
	char path[PATH_MAX], persistence[16] = "", device[NAME_MAX + 8];
	json_object *json = json_object_new_object();

	snprintf(device, sizeof(device), "/dev/%s", disk);
	kernel_path(path, "/sys/block/%s/emu/persistence", disk);
	kernel_read(path, persistence, sizeof(persistence));
	json_add_text(json, "device", device);
	json_add_number(json, "size", number(disk, "size") * 512);
	json_add_text(json, "persistence", persistence);
	json_add_number(json, "read_delay_ns", number(disk, "emu/read_delay_ns"));
	json_add_number(json, "write_delay_ns", number(disk, "emu/write_delay_ns"));
	json_add_number(json, "bandwidth", number(disk, "emu/bandwidth"));
	json_add_flag(json, "tracked", number(disk, "emu/tracked"));
	json_add_flag(json, "used", in_use(disk));
	return json;
}

static void print_device(json_object *json)
{
	char size[SIZE_TEXT];

	printf("%-18s %12s  %-8s", json_text(json, "device"), size_text(size, json_number(json, "size")),
	       json_text(json, "persistence"));
	if (json_number(json, "read_delay_ns") || json_number(json, "write_delay_ns"))
		printf("  read +%llu ns, write +%llu ns", json_number(json, "read_delay_ns"),
		       json_number(json, "write_delay_ns"));
	if (json_number(json, "bandwidth"))
		printf("  %s/s", size_text(size, json_number(json, "bandwidth")));
	if (json_flag(json, "tracked"))
		fputs("  tracked", stdout);
	puts(json_flag(json, "used") ? "  in use" : "");
}

static void take_disk(void *all, const char *disk)
{
	if (!strncmp(disk, EMU_DISK, strlen(EMU_DISK)))
		json_object_array_add(all, describe(disk));
}

static enum exit_status list(const struct verb *verb, int argc, char **argv)
{
	json_object *all = json_object_new_array();
	bool json = false;
	size_t n;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	if (optind != argc)
		return usage_problem(verb, "unexpected argument '%s'", argv[optind]);
	if (!names_in("/sys/block", take_disk, all) && !sysfs_is_there())
		return FAILED;
	n = json_object_array_length(all);
	if (json) {
		print_json(all);
		return DONE;
	}
	for (size_t i = 0; i < n; i++)
		print_device(json_object_array_get_idx(all, i));
	if (!n)
		puts("there are no emulated devices; `forebay emu create` makes one");
	json_object_put(all);
	return DONE;
}

const struct verb verb_emu_list = {
	.name = "emu list",
	.arguments = "[--json]",
	.summary = "show the emulated devices there are",
	.help = "Shows the devices that `forebay emu create` made: size, where stores are durable,\n"
		"what slows them down, and whether they are in use.\n"
		"\n"
		"  --json              all of that in JSON\n",
	.options = options,
	.run = list,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay emu remove: removes an emulated device and frees its memory.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/shell.h"
#include "base/verb.h"
#include "mapped/holders.h"
#include "emu.h"

static const struct option options[] = { OPTION_HELP, { } };

static enum exit_status say_failed(const char *device, int err)
{
	struct stat st;

	if (err == ENODEV) {
		problem("there is no %s", device);
		advice("`forebay emu list` shows what there is.");
	} else if (err == EBUSY && (stat(device, &st) || !say_user(device, st.st_rdev))) {
		problem("%s is in use", device);
		advice("`lsblk %s` may show by what.", in_shell(device));
	} else if (err > 0 && err != EBUSY) {
		problem("cannot remove %s: %s", device, strerror(err));
	}
	return FAILED;
}

static enum exit_status remove_verb(const struct verb *verb, int argc, char **argv)
{
	char device[64];
	__u32 index;
	int err;

	while (next_option(verb, argc, argv) != -1)
		;
	if (argc - optind != 1)
		return usage_problem(verb, "expected one device");
	if (!emu_index(argv[optind], &index))
		return FAILED;
	snprintf(device, sizeof(device), "/dev/" EMU_DISK "%u", index);
	err = emu_control(FOREBAY_EMU_REMOVE, (void *)(uintptr_t)index);
	return err ? say_failed(device, err) : DONE;
}

const struct verb verb_emu_remove = {
	.name = "emu remove",
	.arguments = "DEVICE",
	.summary = "give its memory back",
	.help = "Removes an emulated device, and with it what it holds. Refused while it is in use.\n"
		"\n",
	.options = options,
	.destroys = true,
	.run = remove_verb,
};

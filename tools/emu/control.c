// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the verbs of `forebay emu` share: the control device of the module, and the names of emulated
 * devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/message.h"
#include "sys/release.h"
#include "sys/rights.h"
#include "sys/sysfs.h"
#include "emu.h"

#define CONTROL	"/dev/forebay-emu-control"

static void say_no_control(int err)
{
	bool is_missing = err == ENOENT || err == ENODEV || err == ENXIO;
	char path[PATH_MAX], text[ADVICE_TEXT];

	if (is_missing && !access(kernel_path(path, "/sys/module/forebay_emu"), F_OK)) {
		problem("there is no " CONTROL ", though the module forebay-emu is loaded");
		advice("Is this /dev the machine's? That of a container lacks it: run this outside.");
	} else if (is_missing) {
		problem("the module forebay-emu is not loaded");
		advice("%s", module_advice("forebay-emu", text));
	} else {
		problem("cannot open " CONTROL ": %s", strerror(err));
		if (err == EACCES || err == EPERM)
			advice("%s", rights_advice());
	}
}

/**
 * emu_control - send a request to the module
 * @request: FOREBAY_EMU_*
 * @argument: the request's
 *
 * Return: 0; an errno, which the caller explains; or -1, after a message, if the module isn't loaded or
 * the user lacks the rights.
 */
int emu_control(unsigned long request, void *argument)
{
	int fd = open(CONTROL, O_RDWR | O_CLOEXEC);
	int err = 0;

	if (fd < 0) {
		say_no_control(errno);
		return -1;
	}
	if (ioctl(fd, request, argument))
		err = errno;
	close(fd);
	if (err != EPERM)
		return err;
	problem("the module forebay-emu refuses this");
	advice("%s", rights_advice());
	return -1;
}

/**
 * emu_index - the number of an emulated device
 * @name: /dev/forebay-emuN, forebay-emuN or N
 * @index: filled in
 *
 * Return: false, after a message, if that is not the name of an emulated device.
 */
bool emu_index(const char *name, __u32 *index)
{
	const char *digits = name;
	unsigned long number;
	char *end;

	if (!strncmp(digits, "/dev/", 5))
		digits += 5;
	if (!strncmp(digits, EMU_DISK, strlen(EMU_DISK)))
		digits += strlen(EMU_DISK);
	number = strtoul(digits, &end, 10);
	*index = number;
	if (*digits >= '0' && *digits <= '9' && !*end && number == *index)
		return true;
	problem("%s is not an emulated device", name);
	advice("They are called /dev/" EMU_DISK "N; `forebay emu list` shows them.");
	return false;
}

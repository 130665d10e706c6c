// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the verbs of `forebay emu` share: the module's control device, and the names of its devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "emu.h"
#include "message.h"

#define CONTROL	"/dev/forebay-emu-control"

/**
 * emu_control - ask the module for something
 * @request: FOREBAY_EMU_*
 * @argument: the request's
 *
 * Return: 0; or errno, for the caller to explain; or -1 after a message: there is no module, or no right to
 * it.
 */
int emu_control(unsigned long request, void *argument)
{
	int fd = open(CONTROL, O_RDWR | O_CLOEXEC);
	int err = 0;

	if (fd < 0 && (errno == ENOENT || errno == ENODEV || errno == ENXIO)) {
		problem("the module forebay-emu is not loaded");
		advice("Load it: modprobe forebay-emu");
		return -1;
	}
	if (fd < 0) {
		problem("cannot open %s: %s", CONTROL, strerror(errno));
		if (errno == EACCES || errno == EPERM)
			advice("This needs root.");
		return -1;
	}
	if (ioctl(fd, request, argument))
		err = errno;
	close(fd);
	return err;
}

/**
 * emu_index - the number of an emulated device
 * @name: /dev/forebay-emuN, forebay-emuN or N
 * @index: filled in
 *
 * Return: false, after a message, if the name is no emulated device's.
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
	problem("%s is no emulated device", name);
	advice("They are called /dev/" EMU_DISK "N; `forebay emu list` shows them.");
	return false;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What to do when the kernel refuses something for want of rights. "Become root" helps only a caller that
 * isn't root: in a container, root may lack a capability, be root of a user namespace, or be kept from
 * devices. "Outside" in the advice is outside of the container.
 */
#include <linux/capability.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rights.h"
#include "sysfs.h"

static bool may_administer(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { };

	return syscall(SYS_capget, &head, sets) ||
	       sets[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

/* The first user namespace maps all numbers of users to themselves. */
static bool in_user_namespace(void)
{
	unsigned int inside, outside, count;
	char path[PATH_MAX], map[128];

	return kernel_read(kernel_path(path, "/proc/self/uid_map"), map, sizeof(map)) &&
	       sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 &&
	       (inside || outside || count != UINT32_MAX);
}

/**
 * rights_lacking - what keeps this process from doing what root may do
 *
 * Return: a sentence with what to do; NULL: nothing that is known.
 */
const char *rights_lacking(void)
{
	if (geteuid())
		return "This needs root.";
	if (in_user_namespace())
		return "This needs root of the machine, not of a user namespace: run it outside.";
	if (!may_administer())
		return "This needs the capability CAP_SYS_ADMIN, which root lacks here: run it outside.";
	return NULL;
}

/**
 * rights_advice - what to do after the kernel has refused something (EPERM or EACCES)
 *
 * Return: a sentence.
 */
const char *rights_advice(void)
{
	return rights_lacking() ?:
	       "Even root may not do this here, by the rules of a container or of a security module.";
}

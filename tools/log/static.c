// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a program is linked statically. The dynamic linker preloads libraries, and such a program has none.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "static.h"

/* Where execvp(3) finds a command; false: nowhere. */
static bool find_program(const char *command, char path[PATH_MAX])
{
	const char *folders = getenv("PATH") ?: "/bin:/usr/bin", *end;

	if (strchr(command, '/'))
		return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX;
	for (;; folders = end + 1) {
		end = strchrnul(folders, ':');
		snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - folders), folders, end > folders ? "/" : "",
			 command);
		if (!access(path, X_OK))
			return true;
		if (!*end)
			return false;
	}
}

/* Returns whether the program is one for 64 bits that names no dynamic linker. */
static bool has_no_linker(int fd)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(part))
		return false;
	for (unsigned int i = 0; i < head.e_phnum; i++)
		if (pread(fd, &part, sizeof(part), head.e_phoff + i * sizeof(part)) != sizeof(part) ||
		    part.p_type == PT_INTERP)
			return false;
	return true;
}

/**
 * is_static - whether this is a program under which no library can be put
 * @command: its path, or its name to be looked for in PATH
 *
 * Return: false also for a script, and if it can't be read.
 */
bool is_static(const char *command)
{
	char path[PATH_MAX];
	int fd = find_program(command, path) ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	bool without = fd >= 0 && has_no_linker(fd);

	if (fd >= 0)
		close(fd);
	return without;
}

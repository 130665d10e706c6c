// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of the kernel modules: installed for the right kernels, loaded, of the installed version, signed.
 */
#include <libmount.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/release.h"
#include "sys/sysfs.h"
#include "doctor.h"

#define SECURE_BOOT	"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* By the names of modprobe and of /sys/module. */
static const struct module {
	const char *name, *sysfs;
} modules[] = {
	{ "forebay", "forebay" },
	{ "dm-forebay-writelog", "dm_forebay_writelog" },
	{ "dm-forebay-transit", "dm_forebay_transit" },
};

/* The command that builds the modules for a kernel. */
static void mend_build(struct doctor *doctor, const char *release)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/lib/modules/%s/build", release);
	if (!exists("/var/lib/dkms/forebay")) {
		mend(doctor, "make install (in Forebay's sources), or install the package forebay-dkms");
		return;
	}
	if (!exists(path))
		mend(doctor, "apt-get install linux-headers-%s", release);
	mend(doctor, "dkms autoinstall -k %s", release);
	mend(doctor, "dkms status forebay");
}

/**
 * check_module - the modules are installed for the kernel that runs
 * @doctor: takes the findings
 */
void check_module(struct doctor *doctor)
{
	char release[NAME_MAX + 1], path[PATH_MAX], text[ADVICE_TEXT];

	running_release(release);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		if (module_path(release, modules[i].name, path))
			continue;
		found(doctor, ERROR, modules[i].name, "the module is not installed for Linux %s, which runs",
		      release);
		if (module_is_elsewhere(modules[i].name, text))
			mend(doctor, "%s", text);
		mend_build(doctor, release);
		return;
	}
}

/* The newest kernel of a folder of modules. Names come in the order of versions. */
static void take_kernel(void *arg, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/boot/vmlinuz-%s", name);
	if (exists(path))
		snprintf(arg, NAME_MAX + 1, "%s", name);
}

/**
 * check_next_kernel - the modules are installed for the newest kernel, which the next boot starts
 * @doctor: takes the findings
 */
void check_next_kernel(struct doctor *doctor)
{
	char release[NAME_MAX + 1], newest[NAME_MAX + 1] = "", path[PATH_MAX];

	running_release(release);
	names_in("/lib/modules", take_kernel, newest);
	if (!*newest || !strcmp(newest, release) || module_path(newest, "forebay", path))
		return;
	found(doctor, WARNING, newest,
	      "this kernel is installed, the next boot starts it, and it lacks Forebay's modules");
	mend_build(doctor, newest);
}

static bool is_loaded(const struct module *module)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/module/%s", module->sysfs);
	return exists(path);
}

static void count_line(void *arg, struct libmnt_fs *line)
{
	bool *needed = arg;

	*needed |= is_forebay(line) && !has_option(line, "noauto") && !has_option(line, "x-systemd.automount");
}

static void count_name(void *arg, const char *name)
{
	bool *needed = arg;

	(void)name;
	*needed = true;
}

/**
 * check_module_loaded - the modules are loaded that fstab and the units need
 * @doctor: takes the findings
 */
void check_module_loaded(struct doctor *doctor)
{
	bool needed[ARRAY_SIZE(modules)] = { };

	machine_fstab(&doctor->machine, count_line, &needed[0]);
	names_in("/etc/forebay/writelog", count_name, &needed[1]);
	names_in("/etc/forebay/transit", count_name, &needed[2]);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		if (!needed[i] || is_loaded(&modules[i]))
			continue;
		found(doctor, WARNING, modules[i].name, "%s needs the module, and it is not loaded",
		      i ? "a unit in /etc/forebay" : "/etc/fstab");
		mend(doctor, "modprobe %s", modules[i].name);
		mend(doctor, "systemctl --failed");
	}
}

/* Reads one line from a pipe, without the newline. */
static bool read_line(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;

	while (len + 1 < size && (got = read(fd, text + len, size - 1 - len)) > 0)
		len += got;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* A field of the description of a module file, which may be compressed; false: modinfo failed. */
static bool module_field(const char *file, const char *field, char *text, size_t size)
{
	int ends[2], status = -1;
	pid_t child;

	if (pipe(ends))
		return false;
	child = fork();
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		execlp("modinfo", "modinfo", "-F", field, file, (char *)NULL);
		execl("/sbin/modinfo", "modinfo", "-F", field, file, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	read_line(ends[0], text, size);
	close(ends[0]);
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

/**
 * check_module_version - the modules that are loaded are those that are installed
 * @doctor: takes the findings
 */
void check_module_version(struct doctor *doctor)
{
	char release[NAME_MAX + 1], file[PATH_MAX], path[PATH_MAX], loaded[64], installed[64];

	running_release(release);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		kernel_path(path, "/sys/module/%s/srcversion", modules[i].sysfs);
		if (!kernel_read(path, loaded, sizeof(loaded)) ||
		    !module_path(release, modules[i].name, file))
			continue;
		if (!module_field(file, "srcversion", installed, sizeof(installed))) {
			unseen(doctor, modules[i].name, "modinfo can't read the installed module");
			continue;
		}
		if (!strcmp(loaded, installed))
			continue;
		found(doctor, WARNING, modules[i].name,
		      "the loaded module is of other sources than the installed one");
		mend(doctor, "modprobe -r %s && modprobe %s (unmount and remove what uses it first)",
		     modules[i].name, modules[i].name);
	}
}

/* What demands that modules are signed; NULL: nothing does. */
static const char *signer_wanted(void)
{
	char path[PATH_MAX], text[8] = "";

	/* Four bytes of attributes, then the value. */
	if (kernel_read(kernel_path(path, SECURE_BOOT), text, sizeof(text)) && text[4] == 1)
		return "secure boot is on";
	if (kernel_read(kernel_path(path, "/sys/module/module/parameters/sig_enforce"), text, sizeof(text)) &&
	    *text == 'Y')
		return "the kernel runs with module.sig_enforce";
	return NULL;
}

/**
 * check_signature - the modules are signed if the kernel demands that
 * @doctor: takes the findings
 */
void check_signature(struct doctor *doctor)
{
	char release[NAME_MAX + 1], file[PATH_MAX], signer[128];
	const char *why = signer_wanted();

	running_release(release);
	if (!why || !module_path(release, "forebay", file))
		return;
	if (!module_field(file, "signer", signer, sizeof(signer))) {
		unseen(doctor, "forebay", "modinfo can't read the installed module");
		return;
	}
	if (*signer)
		return;
	found(doctor, ERROR, "forebay", "%s, and the module has no signature: the kernel refuses it", why);
	mend(doctor,
	     "mokutil --import /var/lib/dkms/mok.pub (asks for a password; the next boot asks for it again)");
	mend(doctor, "dkms install --force forebay -k %s", release);
}

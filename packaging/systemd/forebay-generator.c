// SPDX-License-Identifier: GPL-2.0-only
/*
 * A generator of systemd (systemd.generator(7)). systemd makes a mount unit of each line of /etc/fstab. For
 * lines of type forebay, the generator adds what systemd can't know:
 *
 *   - the mount waits for the device of the cache, named by a path in /dev or by a tag;
 *   - the mount needs the file system that the lower directory is on;
 *   - the mount comes before local-fs.target, also with `nofail`: so every service starts after the mount and
 *     stops before it;
 *   - if the mount fails, a unit fails that says what is missing.
 *
 * systemd runs generators early: only the root file system is mounted, and a generator must not wait for a
 * device.
 */
#include <blkid.h>
#include <ctype.h>
#include <errno.h>
#include <libmount.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS	40
#define DROP_IN "50-forebay.conf"

static int complain(const char *what)
{
	fprintf(stderr, "forebay-generator: %s: %s\n", what, strerror(errno));
	return -1;
}

/*
 * A path as the name of a unit, as systemd-escape --path makes it: "/srv/my db" becomes "srv-my\x20db". NULL
 * without memory.
 */
static char *unit_name(const char *path, const char *suffix)
{
	char *name, *end;

	path += strspn(path, "/");
	name = malloc(4 * strlen(path) + strlen(suffix) + 2);
	if (!name)
		return NULL;
	end = name;
	if (!*path)
		*end++ = '-';
	for (const char *at = path; *at; at++) {
		bool plain = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.", *at);

		if (*at == '/') {
			at += strspn(at, "/") - 1;
			if (at[1])
				*end++ = '-';
		} else if (plain && (*at != '.' || at != path)) {
			*end++ = *at;
		} else {
			end += sprintf(end, "\\x%02x", (unsigned char)*at);
		}
	}
	memcpy(end, suffix, strlen(suffix) + 1);
	return name;
}

/* Prints a path as a word of a unit file: in quotes, with special characters escaped. */
static void print_path(FILE *file, const char *path)
{
	fputc('"', file);
	for (; *path; path++) {
		if (*path == '"' || *path == '\\')
			fputc('\\', file);
		if (*path == '%')
			fputc('%', file);
		fputc(*path, file);
	}
	fputc('"', file);
}

/* Removes the last word of a path. */
static void up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/*
 * Follows the symbolic links of @path, an absolute path, as systemd does for a mount point: what doesn't
 * exist yet is kept as it is; "." and "//" are dropped. @links counts the links. Returns false if that can't
 * be done.
 */
static bool resolve(const char *path, char *resolved, int *links)
{
	char todo[PATH_MAX], link[PATH_MAX], next[PATH_MAX];
	size_t len, kept;
	ssize_t got;

	*resolved = '\0';
	if (snprintf(todo, sizeof(todo), "%s", path) >= (int)sizeof(todo))
		return false;
	for (char *at = todo + strspn(todo, "/"); *at; at += strspn(at, "/")) {
		len = strcspn(at, "/");
		kept = strlen(resolved);
		if ((len == 1 && *at == '.') || (len == 2 && !strncmp(at, "..", 2))) {
			if (len == 2)
				up(resolved);
			at += len;
			continue;
		}
		if (kept + 1 + len >= PATH_MAX)
			return false;
		sprintf(resolved + kept, "/%.*s", (int)len, at);
		at += len;
		got = readlink(resolved, link, sizeof(link) - 1);
		if (got <= 0)
			continue;
		link[got] = '\0';
		if (++*links > MAX_LINKS ||
		    snprintf(next, sizeof(next), "%s%s", link, at) >= (int)sizeof(next))
			return false;
		resolved[*link == '/' ? 0 : kept] = '\0';
		at = memcpy(todo, next, strlen(next) + 1);
	}
	if (!*resolved)
		memcpy(resolved, "/", sizeof("/"));
	return true;
}

/* Returns a copy of the value of an option of the line, without quotes around it; NULL if there is none. */
static char *option(struct libmnt_fs *fs, const char *name)
{
	char *value = NULL;
	size_t size = 0;

	if (mnt_fs_get_option(fs, name, &value, &size) || !value)
		return NULL;
	if (size >= 2 && value[0] == '"' && value[size - 1] == '"')
		return strndup(value + 1, size - 2);
	return strndup(value, size);
}

static bool has_option(struct libmnt_fs *fs, const char *name)
{
	return mnt_fs_get_option(fs, name, NULL, NULL) == 0;
}

/* The path that udev will give a device with a tag; NULL: @cache is no tag that udev makes a path of. */
static char *tag_path(const char *cache)
{
	static const struct {
		const char *tag, *folder;
		bool lower_case;
	} tags[] = {
		{ "UUID=", "uuid", true },
		{ "PARTUUID=", "partuuid", true },
		{ "PARTLABEL=", "partlabel", false },
	};
	char encoded[NAME_MAX + 1], *path;

	for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
		size_t len = strlen(tags[i].tag);

		if (strncmp(cache, tags[i].tag, len) ||
		    blkid_encode_string(cache + len, encoded, sizeof(encoded)))
			continue;
		for (char *at = encoded; *at && tags[i].lower_case; at++)
			*at = tolower(*at);
		return asprintf(&path, "/dev/disk/by-%s/%s", tags[i].folder, encoded) < 0 ? NULL : path;
	}
	return NULL;
}

/* The path that udev will give the device. Nothing is looked up, since the device may not exist yet. */
static char *cache_path(struct libmnt_fs *fs)
{
	char *cache = option(fs, "cache"), *path = NULL;

	if (cache)
		path = strncmp(cache, "/dev/", 5) ? tag_path(cache) : strdup(cache);
	free(cache);
	return path;
}

/* Creates a drop-in for a unit. */
static FILE *drop_in(const char *folder, const char *unit)
{
	char *path;
	FILE *file;

	if (asprintf(&path, "%s/%s.d", folder, unit) < 0)
		return NULL;
	if (mkdir(path, 0755) && errno != EEXIST) {
		complain(path);
		free(path);
		return NULL;
	}
	free(path);
	if (asprintf(&path, "%s/%s.d/" DROP_IN, folder, unit) < 0)
		return NULL;
	file = fopen(path, "we");
	if (!file)
		complain(path);
	else
		fprintf(file, "# Made by forebay-generator of /etc/fstab\n[Unit]\n");
	free(path);
	return file;
}

static int written(FILE *file)
{
	bool failed = ferror(file);

	return fclose(file) || failed ? complain(DROP_IN) : 0;
}

/*
 * systemd applies x-systemd.device-timeout to the device in the first field of the line, which is a
 * directory here. The generator applies the timeout to the cache.
 */
static int device_timeout(struct libmnt_fs *fs, const char *folder, const char *device)
{
	char *timeout = option(fs, "x-systemd.device-timeout");
	FILE *file;

	if (!timeout)
		return 0;
	file = drop_in(folder, device);
	if (file)
		fprintf(file, "JobRunningTimeoutSec=%s\n", timeout);
	free(timeout);
	return file ? written(file) : -1;
}

static int needs_device(struct libmnt_fs *fs, const char *folder, FILE *file)
{
	char *path = cache_path(fs), *device;
	int status;

	if (!path)
		return 0;
	device = unit_name(path, ".device");
	free(path);
	if (!device)
		return complain("cache");
	/*
	 * Wants, and not Requires: without the device, the mount is still tried and fails with its own
	 * message. And if udev later reports the device as gone, systemd doesn't end a mount in use.
	 */
	fprintf(file, "Wants=%s\nAfter=%s\n", device, device);
	status = device_timeout(fs, folder, device);
	free(device);
	return status;
}

/* A link may lie on another file system than the directory that it leads to. Both are needed. */
static void needs_lower(const char *lower, FILE *file)
{
	char resolved[PATH_MAX];
	int links = 0;
	bool good = resolve(lower, resolved, &links);

	fprintf(file, "RequiresMountsFor=");
	print_path(file, good ? resolved : lower);
	if (good && links) {
		fputc(' ', file);
		print_path(file, lower);
	}
	fputc('\n', file);
}

static int generate(struct libmnt_fs *fs, const char *folder)
{
	const char *lower = mnt_fs_get_source(fs), *target = mnt_fs_get_target(fs);
	char resolved[PATH_MAX], *unit, *unmounted;
	int links = 0;
	FILE *file;
	int status;

	if (!lower || *lower != '/' || !target || *target != '/')
		return 0;
	if (resolve(target, resolved, &links))
		target = resolved;
	unit = unit_name(target, ".mount");
	unmounted = unit_name(target, ".service");
	file = unit && unmounted ? drop_in(folder, unit) : NULL;
	if (file)
		fprintf(file, "OnFailure=forebay-unmounted@%s\n", unmounted);
	free(unit);
	free(unmounted);
	if (!file)
		return -1;
	needs_lower(lower, file);
	status = needs_device(fs, folder, file);
	/* The boot doesn't wait for a mount that it leaves out, or that an automount makes later. */
	if (!has_option(fs, "noauto") && !has_option(fs, "x-systemd.automount"))
		fprintf(file, "Before=%s\n", has_option(fs, "_netdev") ? "remote-fs.target" : "local-fs.target");
	return written(file) ? -1 : status;
}

int main(int argc, char **argv)
{
	const char *fstab = getenv("SYSTEMD_FSTAB") ?: "/etc/fstab";
	struct libmnt_table *table;
	struct libmnt_iter *lines;
	struct libmnt_fs *fs;
	int status = 0;

	if (argc != 4 && argc != 2) {
		fprintf(stderr, "usage: forebay-generator FOLDER [EARLY LATE], as systemd calls it\n");
		return EXIT_FAILURE;
	}
	table = mnt_new_table_from_file(fstab);
	if (!table)
		return errno == ENOENT ? EXIT_SUCCESS : (complain(fstab), EXIT_FAILURE);
	lines = mnt_new_iter(MNT_ITER_FORWARD);
	while (lines && !mnt_table_next_fs(table, lines, &fs)) {
		const char *type = mnt_fs_get_fstype(fs);

		if (type && !strcmp(type, "forebay") && generate(fs, argv[1]))
			status = EXIT_FAILURE;
	}
	mnt_free_iter(lines);
	mnt_unref_table(table);
	return status;
}

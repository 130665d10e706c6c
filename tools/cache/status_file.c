// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay status FILE: the mapped, attached, pinned and locked ranges of a file, and its pages by state.
 */
#include <errno.h>
#include <fcntl.h>
#include <forebay.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/store/format.h"
#include "base/json.h"
#include "base/message.h"
#include "status.h"

#define END	((uint64_t)INT64_MAX)	/* of the longest possible file */

static const struct { unsigned int bit; const char *name; } attributes[] = {
	{ FOREBAY_RANGE_MAPPED, "mapped" },
	{ FOREBAY_RANGE_LOCKED, "locked" },
	{ FOREBAY_RANGE_ATTACHED, "attached" },
	{ FOREBAY_RANGE_PINNED, "pinned" },
};

static const char * const states[] = { "clean", "out_of_sync", "dirty", "pinned", "busy", "volatile",
				       "lost" };

static void add_pages(json_object *json, const struct forebay_info *info)
{
	const uint64_t pages[] = { info->clean, info->out_of_sync, info->dirty, info->pinned, info->busy,
				   info->volatile_pages, info->lost };

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		json_object_object_add(json, states[i], json_object_new_int64(pages[i]));
}

static json_object *describe_range(const struct forebay_info *info)
{
	json_object *range = json_object_new_object(), *names = json_object_new_array();

	json_object_object_add(range, "offset", json_object_new_int64(info->offset));
	json_object_object_add(range, "length", json_object_new_int64(info->length));
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (info->attributes & attributes[i].bit)
			json_object_array_add(names, json_object_new_string(attributes[i].name));
	json_object_object_add(range, "attributes", names);
	add_pages(range, info);
	return range;
}

static void add_up(struct forebay_info *sum, const struct forebay_info *more)
{
	sum->clean += more->clean;
	sum->out_of_sync += more->out_of_sync;
	sum->dirty += more->dirty;
	sum->pinned += more->pinned;
	sum->busy += more->busy;
	sum->volatile_pages += more->volatile_pages;
	sum->lost += more->lost;
}

/*
 * Neighbours with the same attributes are joined to one range, since the kernel's answer ends where a
 * mapping ends. Beyond the end of the file, only ranges with attributes are shown: a program may attach a
 * range before the file grows into it.
 */
static bool gather_ranges(int fd, uint64_t size, json_object *ranges, struct forebay_info *total)
{
	struct forebay_info info, last = { };

	for (uint64_t offset = 0; offset < END; offset = info.offset + info.length) {
		bool inside = offset < size, adjoins = last.length && offset == last.offset + last.length;

		if (!inside)	/* the page that the file ends in has been read already */
			offset = (offset + PS_PAGE_SIZE - 1) & ~(PS_PAGE_SIZE - 1ULL);
		if (offset >= END)
			break;
		if (forebay_range_info(fd, offset, (inside ? size : END) - offset, FOREBAY_INFO_RUN, &info))
			return false;
		if (!inside && !info.attributes)
			continue;
		add_up(total, &info);
		if (adjoins && last.attributes == info.attributes) {
			add_up(&last, &info);
			last.length = info.offset + info.length - last.offset;
			continue;
		}
		if (last.length)
			json_object_array_add(ranges, describe_range(&last));
		last = info;
	}
	if (last.length)
		json_object_array_add(ranges, describe_range(&last));
	return true;
}

/* The reason why the kernel never caches pages of a file; NULL: it may cache them. */
static const char *why_never_cached(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, 0, &stx))
		return NULL;
	if (stx.stx_attributes & STATX_ATTR_ENCRYPTED)
		return "the lower file system encrypts it";
	if (stx.stx_attributes & STATX_ATTR_DAX)
		return "it is in persistent memory below (DAX)";
	return NULL;
}

/**
 * gather_file - gather the state of a file on a forebay mount
 * @path: the file
 * @good: set to false, after a message, if the state can't be read
 *
 * Return: an object, or NULL.
 */
json_object *gather_file(const char *path, bool *good)
{
	json_object *file = json_object_new_object(), *pages = json_object_new_object();
	json_object *ranges = json_object_new_array();
	struct forebay_info total = { };
	const char *never;
	struct stat st;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	json_add_text(file, "file", path);
	json_object_object_add(file, "pages", pages);
	json_object_object_add(file, "ranges", ranges);
	if (fd < 0 || fstat(fd, &st) || !gather_ranges(fd, st.st_size, ranges, &total)) {
		problem("cannot inspect %s: %s", path, strerror(errno));
		*good = false;
		json_object_put(file);
		file = NULL;
	} else {
		json_object_object_add(file, "size", json_object_new_int64(st.st_size));
		add_pages(pages, &total);
		never = why_never_cached(fd);
		if (never)
			json_add_text(file, "never_cached", never);
	}
	if (fd >= 0)
		close(fd);
	return file;
}

static uint64_t number(json_object *object, const char *key)
{
	return json_object_get_int64(json_object_object_get(object, key));
}

static void print_range(json_object *range)
{
	json_object *names = json_object_object_get(range, "attributes");
	size_t n = json_object_array_length(names);
	uint64_t offset = number(range, "offset"), length = number(range, "length");
	char bytes[SIZE_TEXT] = "to any end";

	if (offset + length < END)
		snprintf(bytes, sizeof(bytes), "%" PRIu64, length);
	printf("  %14" PRIu64 " %14s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 "  ", offset, bytes,
	       number(range, "clean"), number(range, "out_of_sync"), number(range, "pinned"),
	       number(range, "volatile"));
	for (size_t i = 0; i < n; i++)
		printf("%s%s", i ? ", " : "", json_object_get_string(json_object_array_get_idx(names, i)));
	putchar('\n');
}

/**
 * print_file - print the state of a file as a table
 * @file: from gather_file()
 */
void print_file(json_object *file)
{
	json_object *pages = json_object_object_get(file, "pages");
	json_object *ranges = json_object_object_get(file, "ranges");
	json_object *never = json_object_object_get(file, "never_cached");
	size_t n = json_object_array_length(ranges);
	char size[SIZE_TEXT];

	fputs(style(stdout, BOLD), stdout);
	print_name(json_text(file, "file"));
	puts(plain(stdout));
	printf("  in the cache %s", size_text(size, (number(pages, "clean") + number(pages, "out_of_sync"))
					      << PS_PAGE_SHIFT));
	printf(" (%s not yet on the lower file system)",
	       size_text(size, number(pages, "out_of_sync") << PS_PAGE_SHIFT));
	printf(", in memory only %s\n", size_text(size, number(pages, "volatile") << PS_PAGE_SHIFT));
	if (never)
		printf("  never in the cache: %s\n", json_object_get_string(never));
	if (number(pages, "busy"))
		printf("  %s in use by hardware\n", size_text(size, number(pages, "busy") << PS_PAGE_SHIFT));
	if (number(pages, "lost"))
		printf("  %s lost: the cache device can't read them\n",
		       size_text(size, number(pages, "lost") << PS_PAGE_SHIFT));
	printf("  %14s %14s %9s %9s %9s %9s\n", "offset", "bytes", "clean", "outofsync", "pinned", "volatile");
	for (size_t i = 0; i < n; i++)
		print_range(json_object_array_get_idx(ranges, i));
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes and sync calls of one file system, as the kernel's trace events tell of them.
 *
 * The events of ext4 and xfs name the file system and the bytes of each write call. A store to a mapping
 * shows when its page becomes dirty. That event of the kernel's names the disk alone, so partitions beside
 * the file system's are seen, too. Pages of theirs count only if a sync call names their inode number.
 *
 * The events go to an instance of tracefs, so other users of tracing notice nothing.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/compiler.h"
#include "base/message.h"
#include "sys/sysfs.h"
#include "sys/tracing.h"
#include "watch.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC		0x58465342
#endif
#define BUFFER_KIB		16384	/* for each processor */
#define PAGE_SHIFT		12
#define TOLD_MAX		1024

enum kind { WRITTEN, SYNCED, DIRTIED };

/* An event, and the fields that say which bytes. */
static const struct source {
	const char *system, *event;
	enum kind kind;
	const char *offset, *length;
} sources[] = {
	{ "ext4", "ext4_da_write_begin", WRITTEN, "pos", "len" },
	{ "ext4", "ext4_write_begin", WRITTEN, "pos", "len" },
	{ "ext4", "ext4_sync_file_enter", SYNCED, NULL, NULL },
	{ "xfs", "xfs_file_buffered_write", WRITTEN, "offset", "count" },
	{ "xfs", "xfs_file_fsync", SYNCED, NULL, NULL },
	{ "xfs", "xfs_dir_fsync", SYNCED, NULL, NULL },
	{ "writeback", "writeback_dirty_folio", DIRTIED, NULL, NULL },
};

struct watch {
	const char *type;		/* of the file system */
	char by_device[40], by_disk[40];	/* filters */
	struct tracing tracing;
	uint64_t start_ns, lost;	/* events */
	write_fn written;
	sync_fn synced;
	void *arg;
	const sigset_t *signals;	/* one of them ends the watching; they are blocked */
	double until;			/* so does this time, in seconds of CLOCK_MONOTONIC */
	unsigned int told;		/* events since the last look at both */
	bool failed, ended;
};

static const char *type_of(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs)) {
		problem("%s: %s", path, strerror(errno));
		return NULL;
	}
	if (fs.f_type == EXT4_SUPER_MAGIC)
		return "ext4";
	if ((uint32_t)fs.f_type == XFS_SUPER_MAGIC)
		return "xfs";
	problem("%s: on a file system that can't be watched", path);
	advice("ext4 and xfs can be. On a mount of Forebay, `forebay status` and `forebay top` show what it takes.");
	return NULL;
}

/* Filters for the file system, and for its disk. */
static bool find_device(struct watch *watch, const char *path)
{
	struct stat st;
	dev_t disk;

	watch->type = type_of(path);
	if (!watch->type)
		return false;
	if (!sysfs_is_there())
		return false;
	if (stat(path, &st) || blkid_devno_to_wholedisk(st.st_dev, NULL, 0, &disk)) {
		problem("%s: the disk of its file system isn't known", path);
		return false;
	}
	/* As the kernel numbers devices within itself. */
	snprintf(watch->by_device, sizeof(watch->by_device), "dev == %u",
		 major(st.st_dev) << 20 | minor(st.st_dev));
	snprintf(watch->by_disk, sizeof(watch->by_disk), "name == \"%u:%u\"", major(disk), minor(disk));
	return true;
}

static bool is_wanted(const struct watch *watch, const struct source *source)
{
	return source->kind == DIRTIED || !strcmp(source->system, watch->type);
}

/* Not all kernels have all events; without those of sync calls there is nothing to tell. */
static bool enable(struct watch *watch, const struct source *source)
{
	const char *filter = source->kind == DIRTIED ? watch->by_disk : watch->by_device;
	struct tracefs_instance *instance = watch->tracing.instance;

	if (!tracefs_event_file_exists(instance, source->system, source->event, "enable") &&
	    source->kind != SYNCED)
		return true;
	if (tracefs_event_file_write(instance, source->system, source->event, "filter", filter) < 0 ||
	    tracefs_event_enable(instance, source->system, source->event)) {
		problem("the kernel doesn't trace %s:%s: %s", source->system, source->event, strerror(errno));
		return false;
	}
	return true;
}

static bool begin(struct watch *watch)
{
	const char *const systems[] = { watch->type, "writeback", NULL };
	const char *why = tracing_begin(&watch->tracing, "advise", systems, BUFFER_KIB);

	if (why) {
		problem("can't trace writes and sync calls: %s", why);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (is_wanted(watch, &sources[i]) && !enable(watch, &sources[i]))
			return false;
	return true;
}

/**
 * watch_begin - from now on, events are collected
 * @path: a file or directory of the file system
 * @written: called for pages that were written to
 * @synced: called for sync calls
 * @arg: for both
 *
 * Return: for watch_end(); NULL if that was not possible, which has been told.
 */
struct watch *watch_begin(const char *path, write_fn written, sync_fn synced, void *arg)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch) {
		problem("out of memory");
		return NULL;
	}
	watch->written = written;
	watch->synced = synced;
	watch->arg = arg;
	if (find_device(watch, path) && begin(watch))
		return watch;
	watch_end(watch);
	return NULL;
}

/* Returns the type of the file system: "ext4" or "xfs". */
const char *watch_type(const struct watch *watch)
{
	return watch->type;
}

/* How many times the kernel had no room for events: each time some were lost. */
uint64_t watch_lost(const struct watch *watch)
{
	return watch->lost;
}

static uint64_t value(struct tep_event *event, struct tep_record *record, const char *field)
{
	unsigned long long number = 0;

	tep_get_field_val(NULL, event, field, record, &number, 1);
	return number;
}

static bool tell_write(struct watch *watch, const struct source *source, struct tep_event *event,
		       struct tep_record *record)
{
	uint64_t inode = value(event, record, "ino"), first, length;

	if (source->kind == DIRTIED) {
		first = value(event, record, "index");
		return watch->written(watch->arg, inode, first, first);
	}
	first = value(event, record, source->offset);
	length = value(event, record, source->length);
	if (!length)
		return true;
	return watch->written(watch->arg, inode, first >> PAGE_SHIFT, (first + length - 1) >> PAGE_SHIFT);
}

static bool tell_sync(struct watch *watch, struct tep_event *event, struct tep_record *record)
{
	/* Of two processors' events the later one may come first. */
	double seconds = record->ts > watch->start_ns ? (record->ts - watch->start_ns) / 1e9 : 0;

	return watch->synced(watch->arg, value(event, record, "ino"), seconds,
			     tep_data_pid(watch->tracing.events, record));
}

/*
 * Programs may make events as fast as they are told of, and then there is no last one. What is left of the
 * events when the watching ends is not told.
 */
static bool is_over(struct watch *watch)
{
	sigset_t pending;

	if (++watch->told < TOLD_MAX)
		return false;
	watch->told = 0;
	watch->ended = seconds_now() > watch->until ||
		       (!sigpending(&pending) && !sigandset(&pending, &pending, watch->signals) &&
			!sigisemptyset(&pending));
	return watch->ended;
}

static int tell(struct tep_event *event, struct tep_record *record, int cpu, void *arg)
{
	struct watch *watch = arg;
	bool fine = true;

	(void)cpu;
	watch->start_ns = watch->start_ns ?: record->ts;
	watch->lost += !!record->missed_events;
	for (size_t i = 0; i < ARRAY_SIZE(sources) && fine; i++) {
		if (strcmp(sources[i].event, event->name))
			continue;
		if (sources[i].kind == SYNCED)
			fine = tell_sync(watch, event, record);
		else
			fine = tell_write(watch, &sources[i], event, record);
	}
	watch->failed = !fine;
	return !fine || is_over(watch);
}

/**
 * watch_read - tell of the events since the last call
 * @watch: from watch_begin()
 * @until: tell of none after this time, in seconds of seconds_now()
 * @signals: nor after one of these, which are blocked, has come
 *
 * Return: false: a function that was told of them has failed.
 */
bool watch_read(struct watch *watch, double until, const sigset_t *signals)
{
	watch->until = until;
	watch->signals = signals;
	/* Without any event it fails, too. */
	if (!watch->ended)
		tracefs_iterate_raw_events(watch->tracing.events, watch->tracing.instance, NULL, 0, tell,
					   watch);
	return !watch->failed;
}

/* Seconds of CLOCK_MONOTONIC. */
double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

void watch_end(struct watch *watch)
{
	tracing_end(&watch->tracing);
	free(watch);
}

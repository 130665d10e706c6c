// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the state of a cache as a table, with a sentence for each problem that the user can solve.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "../core/store/format.h"
#include "base/json.h"
#include "base/latency.h"
#include "base/message.h"
#include "base/shell.h"
#include "status.h"

#define BAR_WIDTH	40
#define TIME_TEXT	32

static bool has(json_object *cache, const char *key)
{
	return json_object_object_get(cache, key);
}

static const char *pages_text(char buffer[SIZE_TEXT], uint64_t pages)
{
	return size_text(buffer, pages << PS_PAGE_SHIFT);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void print_title(json_object *cache)
{
	json_object *targets = json_object_object_get(cache, "mountpoints");
	size_t n = json_object_array_length(targets);

	fputs(style(stdout, BOLD), stdout);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ", " : "", stdout);
		print_name(json_object_get_string(json_object_array_get_idx(targets, i)));
	}
	if (!n)
		print_name(json_text(cache, "device"));
	puts(plain(stdout));
	if (!json_flag(cache, "mounted"))
		puts("  not mounted");
	else if (!n)
		puts("  mounted where this process cannot see it");
}

/* Unmounted: what waits for the next mount. Mounted: whether the log is on. */
static void print_names(json_object *cache)
{
	char size[SIZE_TEXT];

	if (!has(cache, "names_size") || !json_number(cache, "names_size"))
		return;
	row("name log");
	printf("%s", size_text(size, json_number(cache, "names_size")));
	if (has(cache, "names_records"))
		printf(", %llu change%s of names", json_number(cache, "names_records"),
		       PLURAL(json_number(cache, "names_records")));
	if (has(cache, "names_state"))
		printf(", %s, %s used", json_text(cache, "names_state"),
		       size_text(size, json_number(cache, "names_used")));
	putchar('\n');
}

static void print_identity(json_object *cache)
{
	const char *lower = json_text(cache, "lower"), *persistence = json_text(cache, "persistence");
	char size[SIZE_TEXT];

	row("cache");
	print_name(json_text(cache, "device"));
	printf(", %s, UUID %s\n", pages_text(size, json_number(cache, "pages_total")),
	       json_text(cache, "cache_uuid"));
	row("lower");
	if (!json_text(cache, "lower_uuid")) {
		puts("none yet");
	} else {
		print_name(lower ?: "");
		printf("%sfile system %s\n", lower ? " on " : "", json_text(cache, "lower_uuid"));
	}
	print_names(cache);
	if (has(cache, "mode")) {
		row("mode");
		puts(json_text(cache, "mode"));
	}
	if (has(cache, "pin_limit")) {
		row("pinned");
		printf("%s", pages_text(size, json_number(cache, "pages_pinned")));
		printf(" of at most %s", pages_text(size, json_number(cache, "pin_limit")));
		printf(", %s per user\n", pages_text(size, json_number(cache, "pin_limit_user")));
	}
	if (persistence) {
		row("durable in");
		puts(!strcmp(persistence, "cpu-cache") ? "CPU caches" :
		     !strcmp(persistence, "memory-controller") ?
		     "the memory controller (caches are flushed)" : persistence);
	}
}

static void print_share(const char *name, uint64_t pages, uint64_t total, const char *note)
{
	char size[SIZE_TEXT];

	row(name);
	printf("%12s %5.1f %%%s\n", pages_text(size, pages), percent(pages, total), note);
}

/* Cells of the bar for a share; a share of at least one page gets at least one cell. */
static int cells(uint64_t pages, uint64_t total)
{
	int n = total ? pages * BAR_WIDTH / total : 0;

	return pages && !n ? 1 : n;
}

static void print_bar(uint64_t out_of_sync, uint64_t clean, uint64_t total)
{
	int hot = cells(out_of_sync, total), warm = cells(clean, total);

	if (hot + warm > BAR_WIDTH)
		warm = BAR_WIDTH - hot;
	row("");
	putchar('[');
	fputs(style(stdout, YELLOW), stdout);
	for (int i = 0; i < hot; i++)
		putchar('#');
	fputs(style(stdout, GREEN), stdout);
	for (int i = 0; i < warm; i++)
		putchar('=');
	fputs(plain(stdout), stdout);
	printf("%*s]\n", BAR_WIDTH - hot - warm, "");
}

static void print_pages(json_object *cache)
{
	uint64_t total = json_number(cache, "pages_total"), out_of_sync = json_number(cache, "pages_out_of_sync");
	uint64_t clean = json_number(cache, "pages_clean"), free = json_number(cache, "pages_free");
	uint64_t unplaced = json_number(cache, "pages_unplaced");
	uint64_t known = out_of_sync + clean + free + unplaced;
	char size[SIZE_TEXT], note[64] = "";

	if (json_number(cache, "pages_dirty"))
		snprintf(note, sizeof(note), "  (%s of it being written through mappings)",
			 pages_text(size, json_number(cache, "pages_dirty")));
	print_share("out-of-sync", out_of_sync, total, note);
	print_share("clean", clean, total, "");
	print_share("free", free, total, "");
	if (unplaced)
		print_share("unplaced", unplaced, total, "");
	if (known < total && json_flag(cache, "mounted"))
		print_share("on the way", total - known, total, "");
	print_bar(out_of_sync, clean, total);
	row("files");
	printf("%llu of %llu\n", json_number(cache, "files_used"),
	       json_number(cache, "files_total"));
}

static const char *time_text(char buffer[TIME_TEXT], uint64_t ns)
{
	if (ns < 1000000)
		snprintf(buffer, TIME_TEXT, "%.1f us", ns / 1e3);
	else
		snprintf(buffer, TIME_TEXT, "%.1f ms", ns / 1e6);
	return buffer;
}

/* How long sync calls took that had to do no more than this. */
static void print_latency(json_object *cache, const char *key, const char *name)
{
	json_object *latency = json_object_object_get(cache, key);
	uint64_t count = latency ? json_number(latency, "count") : 0;
	char text[TIME_TEXT];

	if (!count)
		return;
	row(name);
	printf("%" PRIu64 " sync%s, half below %s", count, PLURAL(count),
	       time_text(text, latency_percentile(latency, 50)));
	printf(", 99 of 100 below %s\n", time_text(text, latency_percentile(latency, 99)));
}

/* What the kernel copies to and from the cache. */
static void print_copies(json_object *cache)
{
	uint64_t limit = json_number(cache, "copy_limit"), user = json_number(cache, "copy_limit_user");
	uint64_t tasks = json_number(cache, "copy_tasks");
	char size[SIZE_TEXT];

	if (!has(cache, "copied_in"))	/* only root may know */
		return;
	row("copied");
	printf("%s in, ", size_text(size, json_number(cache, "copied_in")));
	printf("%s out, ", size_text(size, json_number(cache, "copied_out")));
	printf("%s for writeback", size_text(size, json_number(cache, "copied_back")));
	if (json_number(cache, "mapped_stores"))
		printf("; about %s stored in mappings", size_text(size, json_number(cache, "mapped_stores")));
	if (limit)
		printf("; at most %s a second", size_text(size, limit));
	if (user)
		printf("%s %s a second per user", limit ? "," : "; at most", size_text(size, user));
	if (tasks)
		printf("; %" PRIu64 " task%s at a time", tasks, PLURAL(tasks));
	putchar('\n');
}

static void print_work(json_object *cache)
{
	uint64_t absorbed = json_number(cache, "syncs_absorbed"), lower = json_number(cache, "syncs_lower");
	char size[SIZE_TEXT];

	row("syncs");
	printf("%" PRIu64 " absorbed (%.1f %%), %" PRIu64 " went below\n", absorbed,
	       percent(absorbed, absorbed + lower), lower);
	print_latency(cache, "sync_latency_memory", "in memory");
	print_latency(cache, "sync_latency_move", "with a move");
	print_latency(cache, "sync_latency_storage", "by storage");
	print_copies(cache);
	row("moved in");
	printf("%s\n", pages_text(size, json_number(cache, "pages_absorbed")));
	row("written back");
	printf("%s", pages_text(size, json_number(cache, "pages_written_back")));
	if (json_number(cache, "writeback_age"))
		printf("; data older than %llu s, while storage is idle",
		       json_number(cache, "writeback_age"));
	printf("\n");
	row("reclaimed");
	printf("%s\n", pages_text(size, json_number(cache, "pages_reclaimed")));
	if (json_number(cache, "pages_recovered")) {
		row("recovered");
		printf("%s at mount\n", pages_text(size, json_number(cache, "pages_recovered")));
	}
}

static void print_costs(json_object *cache)
{
	uint64_t max = json_number(cache, "absorb_max"), total = json_number(cache, "pages_total");
	char call[TIME_TEXT], page[TIME_TEXT], size[SIZE_TEXT];
	const char *mode = json_text(cache, "mode");

	if (!has(cache, "absorb_max") || !mode || strcmp(mode, "auto"))
		return;
	row("costs");
	printf("a sync below %s", time_text(call, json_number(cache, "lower_sync_ns")));
	printf(" and %s a page,", time_text(page, json_number(cache, "lower_sync_page_ns")));
	printf(" in the cache %s", time_text(call, json_number(cache, "absorb_ns")));
	printf(" and %s\n", time_text(page, json_number(cache, "absorb_page_ns")));
	row("absorbs");
	printf("syncs of up to %s\n", pages_text(size, max < total ? max : total));
}

static void mark(const char *colour)
{
	printf("  %s!%s ", style(stdout, colour), plain(stdout));
}

static const char *first_mountpoint(json_object *cache)
{
	json_object *targets = json_object_object_get(cache, "mountpoints");
	json_object *first = json_object_array_get_idx(targets, 0);

	return first ? json_object_get_string(first) : "MOUNTPOINT";
}

static void say_unplaced(json_object *cache)
{
	uint64_t pages = json_number(cache, "pages_unplaced");
	char size[SIZE_TEXT];

	if (!pages)
		return;
	mark(RED);
	printf("%" PRIu64 " page%s (%s) can't be placed: the lower file is gone or can't be opened (see dmesg).\n"
	       "    Kept, and tried again by `forebay drain`; `forebay drain --discard-unplaced %s` gives up on them.\n",
	       pages, PLURAL(pages), pages_text(size, pages), in_shell(first_mountpoint(cache)));
}

/* Pages in bad blocks of the device. */
static void say_lost(json_object *cache)
{
	uint64_t pages = json_number(cache, "pages_lost");
	char size[SIZE_TEXT];

	if (!pages)
		return;
	mark(RED);
	printf("%" PRIu64 " page%s (%s) of files %s lost: the device can't read %s any more. dmesg has the inodes.\n"
	       "    Delete these files and restore them from a backup.\n",
	       pages, PLURAL(pages), pages_text(size, pages), pages == 1 ? "is" : "are",
	       pages == 1 ? "it" : "them");
}

static void say_writeback(json_object *cache)
{
	uint64_t failed = json_number(cache, "writeback_errors");
	int err = -json_object_get_int(json_object_object_get(cache, "last_error"));

	if (err) {
		mark(RED);
		printf("Writing back fails: %s (%" PRIu64 " attempt%s so far).\n"
		       "    Nothing is lost: the pages stay in the cache, and are tried again. %s\n",
		       strerror(err), failed, PLURAL(failed), lower_advice(err));
	} else if (failed) {
		mark(YELLOW);
		printf("Writing back failed %" PRIu64 " time%s since mount; the latest attempt succeeded.\n",
		       failed, PLURAL(failed));
	}
}

static void say_full(json_object *cache)
{
	uint64_t full = json_number(cache, "cache_full");

	if (!full)
		return;
	mark(YELLOW);
	printf("%" PRIu64 " sync%s found too few free pages and went to storage; a larger cache would take them.\n",
	       full, PLURAL(full));
}

static void say_volatile(json_object *cache)
{
	if (!json_number(cache, "volatile_cache"))
		return;
	mark(RED);
	puts("The cache is ordinary memory: what is synced goes with the power. For trying things out only.");
}

static void say_unmounted(json_object *cache)
{
	uint64_t damaged = json_number(cache, "records_damaged"), pages = json_number(cache, "pages_out_of_sync");
	uint64_t files = json_number(cache, "files_unflushed"), names = json_number(cache, "names_records");
	bool refused = damaged || json_number(cache, "names_damaged");
	const char *device = json_text(cache, "device");

	if (json_number(cache, "names_damaged")) {
		mark(RED);
		printf("The name log is damaged; `forebay check %s` tells more.\n", in_shell(device));
	}
	if (damaged) {
		mark(RED);
		printf("%" PRIu64 " record%s damaged; ", damaged, damaged == 1 ? " is" : "s are");
		printf("`forebay check %s` tells more.\n", in_shell(device));
	}
	if (json_flag(cache, "mounted") || (!pages && !files && !names))
		return;
	mark(YELLOW);
	if (pages)
		printf("The lower file system lacks what is out-of-sync.");
	else if (names)
		printf("The lower file system may lack %" PRIu64 " change%s of names.", names, PLURAL(names));
	else
		printf("The lower file system may lack the size or time of %" PRIu64 " file%s.", files,
		       PLURAL(files));
	/* A mount refuses damaged records. */
	puts(refused ? "" : " To have it there, mount and unmount:");
	if (!refused)
		printf("    mount -t forebay -o cache=%s LOWER MOUNTPOINT\n", in_shell(device));
}

/**
 * print_cache - print the state of one cache
 * @cache: as status.h has it
 */
void print_cache(json_object *cache)
{
	print_title(cache);
	print_identity(cache);
	print_pages(cache);
	if (json_flag(cache, "mounted"))
		print_work(cache);
	if (json_flag(cache, "mounted"))
		print_costs(cache);
	say_volatile(cache);
	say_unplaced(cache);
	say_lost(cache);
	say_writeback(cache);
	say_full(cache);
	say_unmounted(cache);
}

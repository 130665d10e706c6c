// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay advise: watches what programs make durable on a file system, and says what a cache of each size
 * would do for them. Nothing is changed, and Forebay need not be in use.
 */
#include <errno.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/verb.h"
#include "model.h"
#include "sys/tracing.h"
#include "watch.h"

#define PAGE		4096
#define SIZE_BITS_MIN	14		/* 2^14 pages: 64 MiB */
#define SIZE_BITS_MAX	24		/* 64 GiB */
#define CALLERS		5		/* that are shown */
#define STEP_NS		200000000
#define LAST_SECONDS	1		/* for reading the last events */

enum { OPT_SECONDS = 1, OPT_JSON };

static const struct option options[] = {
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

/* A thread that makes sync calls: the kernel's events know no more. */
struct caller {
	int pid;
	char name[32];
	uint64_t calls, pages;
};

struct advise {
	struct model *model;
	struct caller *callers;
	size_t nr_callers;
};

static struct caller *caller_of(struct advise *advise, int pid)
{
	struct caller *callers, *one;
	char path[40];
	FILE *file;

	for (size_t i = 0; i < advise->nr_callers; i++)
		if (advise->callers[i].pid == pid)
			return &advise->callers[i];
	callers = realloc(advise->callers, (advise->nr_callers + 1) * sizeof(*callers));
	if (!callers)
		return NULL;
	advise->callers = callers;
	one = &callers[advise->nr_callers++];
	*one = (struct caller){ .pid = pid, .name = "?" };
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "r");
	if (file) {
		if (fgets(one->name, sizeof(one->name), file))
			one->name[strcspn(one->name, "\n")] = '\0';
		fclose(file);
	}
	return one;
}

static bool written(void *arg, uint64_t inode, uint64_t first, uint64_t last)
{
	struct advise *advise = arg;

	return model_write(advise->model, inode, first, last);
}

static bool synced(void *arg, uint64_t inode, double seconds, int pid)
{
	struct advise *advise = arg;
	struct caller *caller = caller_of(advise, pid);
	uint64_t pages;

	if (!caller || !model_sync(advise->model, inode, seconds, &pages))
		return false;
	caller->calls++;
	caller->pages += pages;
	return true;
}

/* Until the time is over or a signal comes. Returns the seconds that it was; negative: out of memory. */
static double watch_for(struct watch *watch, double seconds, const sigset_t *signals)
{
	const struct timespec step = { .tv_nsec = STEP_NS };
	double start = seconds_now(), end = start + seconds;
	bool ended = false;

	while (!ended && seconds_now() < end) {
		ended = sigtimedwait(signals, NULL, &step) > 0;
		if (!watch_read(watch, (ended ? seconds_now() : end) + LAST_SECONDS, signals))
			return -1;
	}
	return seconds_now() - start;
}

/*
 * The smallest size to recommend, as a power of two of pages. What the busiest window made durable fills at
 * most half of it. By the end of a window the data are old enough to be written back while storage is idle.
 * The other half leaves room for data that wait longer because storage isn't idle.
 */
static unsigned int recommended(const struct model_result *result)
{
	unsigned int size = SIZE_BITS_MIN;

	while (size < SIZE_BITS_MAX && 1ULL << size < 2 * result->busiest)
		size++;
	return size;
}

/* Sizes beyond the first that holds everything say nothing new. */
static unsigned int largest_shown(const struct model_result *result)
{
	unsigned int size = recommended(result);

	while (size < SIZE_BITS_MAX && 1ULL << size < result->distinct)
		size++;
	return size;
}

static json_object *size_of(const struct model_result *result, unsigned int size, double seconds)
{
	json_object *one = json_object_new_object();
	uint64_t below = result->pages - result->again[size];

	json_add_number(one, "bytes", (uint64_t)PAGE << size);
	json_add_number(one, "pages_synced_again", result->again[size]);
	json_add_number(one, "bytes_to_ssd", below * PAGE);
	json_add_number(one, "ssd_bytes_per_second", seconds > 0 ? below * PAGE / seconds : 0);
	if (result->full[size] >= 0)
		json_object_object_add(one, "full_after_seconds", json_object_new_double(result->full[size]));
	return one;
}

static int by_pages(const void *a, const void *b)
{
	const struct caller *one = a, *other = b;

	return one->pages != other->pages ? (one->pages < other->pages) - (one->pages > other->pages) :
	       (one->calls < other->calls) - (one->calls > other->calls);
}

static json_object *list_of_callers(struct advise *advise)
{
	json_object *list = json_object_new_array();

	if (advise->nr_callers)
		qsort(advise->callers, advise->nr_callers, sizeof(*advise->callers), by_pages);
	for (size_t i = 0; i < advise->nr_callers && i < CALLERS; i++) {
		json_object *one = json_object_new_object();

		json_add_number(one, "thread", advise->callers[i].pid);
		json_add_text(one, "name", advise->callers[i].name);
		json_add_number(one, "sync_calls", advise->callers[i].calls);
		json_add_number(one, "pages", advise->callers[i].pages);
		json_object_array_add(list, one);
	}
	return list;
}

/* All that was found, for both ways to print it. */
static json_object *findings(struct advise *advise, const char *path, const struct watch *watch,
			     double seconds)
{
	json_object *all = json_object_new_object(), *sizes = json_object_new_array();
	struct model_result result;

	model_result(advise->model, &result);
	json_add_text(all, "path", path);
	json_add_text(all, "type", watch_type(watch));
	json_object_object_add(all, "seconds", json_object_new_double(seconds));
	json_add_number(all, "sync_calls", result.calls);
	json_add_number(all, "sync_calls_without_data", result.empty_calls);
	json_add_number(all, "files", result.files);
	json_add_number(all, "pages", result.pages);
	json_add_number(all, "distinct_pages", result.distinct);
	json_add_number(all, "largest_call_pages", result.largest);
	json_add_number(all, "busiest_pages", result.busiest);
	json_add_number(all, "busiest_seconds", MODEL_WINDOW);
	json_add_number(all, "lost_events", watch_lost(watch));
	for (unsigned int size = SIZE_BITS_MIN; size <= largest_shown(&result); size++)
		json_object_array_add(sizes, size_of(&result, size, seconds));
	json_object_object_add(all, "sizes", sizes);
	json_object_object_add(all, "callers", list_of_callers(advise));
	if (result.pages)
		json_add_number(all, "recommended_bytes", (uint64_t)PAGE << recommended(&result));
	return all;
}

static void print_sizes(json_object *all)
{
	json_object *sizes = json_object_object_get(all, "sizes"), *full;
	char text[SIZE_TEXT], rate[SIZE_TEXT];

	printf("\n%-10s  %18s  %14s  %s\n", "CACHE", "SYNCED AGAIN IN IT", "TO THE SSD /S", "FULL AFTER");
	for (size_t i = 0; i < json_object_array_length(sizes); i++) {
		json_object *one = json_object_array_get_idx(sizes, i);

		printf("%-10s  %16.0f %%  %14s  ", size_text(text, json_number(one, "bytes")),
		       100.0 * json_number(one, "pages_synced_again") / json_number(all, "pages"),
		       size_text(rate, json_number(one, "ssd_bytes_per_second")));
		if (json_object_object_get_ex(one, "full_after_seconds", &full))
			printf("%.0f s\n", json_object_get_double(full));
		else
			puts("-");
	}
}

static void print_callers(json_object *all)
{
	json_object *callers = json_object_object_get(all, "callers");

	printf("\n%-8s  %-16s  %10s  %10s\n", "THREAD", "NAME", "SYNC CALLS", "PAGES");
	for (size_t i = 0; i < json_object_array_length(callers); i++) {
		json_object *one = json_object_array_get_idx(callers, i);
		int gap = 16 - (int)strlen(json_text(one, "name"));	/* a kernel worker's may be longer */

		printf("%-8llu  ", json_number(one, "thread"));
		print_name(json_text(one, "name"));
		printf("%*s  %10llu  %10llu\n", gap > 0 ? gap : 0, "",
		       json_number(one, "sync_calls"), json_number(one, "pages"));
	}
}

static void print_advice(json_object *all)
{
	char text[SIZE_TEXT], busiest[SIZE_TEXT];

	printf("\nA cache of %s%s%s: the busiest %llu s made %s durable, which fills at most half of it.\n",
	       style(stdout, BOLD), size_text(text, json_number(all, "recommended_bytes")), plain(stdout),
	       json_number(all, "busiest_seconds"),
	       size_text(busiest, json_number(all, "busiest_pages") * PAGE));
}

static void print_findings(json_object *all)
{
	unsigned long long empty = json_number(all, "sync_calls_without_data");
	unsigned long long calls = json_number(all, "sync_calls");
	double seconds = json_object_get_double(json_object_object_get(all, "seconds"));
	char text[SIZE_TEXT];

	print_name(json_text(all, "path"));
	printf(" (%s), %.0f s: %llu sync call%s", json_text(all, "type"), seconds, calls, PLURAL(calls));
	if (!json_number(all, "pages")) {
		printf(". %s\n", calls ? "None had data to make durable: a cache would hold nothing." :
				       "A cache would change nothing here.");
		return;
	}
	printf(" made %s durable in %llu file%s; %llu had names and attributes alone.\n",
	       size_text(text, json_number(all, "pages") * PAGE), json_number(all, "files"),
	       PLURAL(json_number(all, "files")), empty);
	print_sizes(all);
	print_callers(all);
	print_advice(all);
}

static enum exit_status watch_path(struct advise *advise, const char *path, double seconds, bool json)
{
	struct progress progress;
	struct watch *watch;
	json_object *all;
	sigset_t signals;
	double spent;

	/* They wait for watch_for(). */
	tracing_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	watch = watch_begin(path, written, synced, advise);
	if (!watch)
		return FAILED;
	progress_begin(&progress, path, "watching");
	spent = watch_for(watch, seconds, &signals);
	progress_end(&progress);
	if (spent < 0) {
		problem("out of memory after too many pages");
		advice("Give fewer --seconds.");
		watch_end(watch);
		return FAILED;
	}
	if (watch_lost(watch))
		problem("%s: the kernel had no room for some events, so there was more than is shown", path);
	all = findings(advise, path, watch, spent);
	watch_end(watch);
	if (json) {
		print_json(all);	/* frees it */
		return DONE;
	}
	print_findings(all);
	json_object_put(all);
	return DONE;
}

static enum exit_status advise_run(const struct verb *verb, int argc, char **argv)
{
	struct advise advise = { };
	enum exit_status status;
	double seconds = 60;
	bool json = false;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		json |= option == OPT_JSON;
		if (option == OPT_SECONDS && (!parse_decimal(optarg, 86400, &seconds) || seconds < 1))
			return usage_problem(verb, "--seconds %s: not a number from 1 to 86400", optarg);
	}
	if (optind + 1 != argc)
		return usage_problem(verb, "expected a directory");
	advise.model = model_new();
	if (!advise.model) {
		problem("out of memory");
		return FAILED;
	}
	status = watch_path(&advise, argv[optind], seconds, json);
	model_free(advise.model);
	free(advise.callers);
	return status;
}

const struct verb verb_advise = {
	.name = "advise",
	.arguments = "[OPTION]... DIRECTORY",
	.summary = "find out how large a cache programs need",
	.help = "Watches what is written and synced on the directory's whole file system, ext4 or xfs,\n"
		"and says what a cache of each size would hold of it. Changes nothing; Forebay need\n"
		"not be in use. Takes root. Ctrl-C ends the watching, and shows what was found.\n"
		"\n"
		"  --seconds N         watch for so long [60]\n"
		"  --json              an object with the findings\n",
	.options = options,
	.run = advise_run,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog check: reads a whole write log with core's check, writes nothing, and explains the
 * findings.
 */
#include <stdlib.h>

#include "base/message.h"
#include "base/progress.h"
#include "base/shell.h"
#include "device/findings.h"
#include "device/log.h"

enum { OPT_FORCE = 1, OPT_JSON };

static const struct option options[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

#define PLACE_TEXT	120

/* By enum wl_damage_kind: what is damaged, and what the damage means. */
static const struct finding_kind kinds[] = {
	[WL_BAD_SUPER] = {
		"superblock",
		"The superblock is there twice; a damaged copy is rewritten when the log is used next." },
	[WL_BAD_GENERATION] = {
		"generation",
		"A generation's word says whether it holds writes; of a damaged one all are lost." },
	[WL_BAD_SUM] = {
		"generation",
		"A generation has lost writes that it was closed with; which sectors is not known." },
	[WL_BAD_CHUNK] = {
		"chunk",
		"A chunk's word says how many writes it holds; of a damaged one all are lost." },
	[WL_BAD_ENTRY] = {
		"entry",
		"An entry's header says which sectors were written; with a damaged one a write is lost." },
	[WL_BAD_DATA] = {
		"data",
		"The sectors whose data are damaged hold neither what was written nor what was before." },
};

struct log_check {
	const struct wl *wl;
	struct findings findings;
};

static void say_place(const struct wl_damage *damage, char text[PLACE_TEXT])
{
	int at = snprintf(text, PLACE_TEXT, "%s %u", damage->kind == WL_BAD_SUPER ? "superblock" :
			  "generation", damage->gen);

	if (damage->kind >= WL_BAD_CHUNK)
		at += snprintf(text + at, PLACE_TEXT - at, ", chunk %u", damage->chunk);
	if (damage->kind >= WL_BAD_ENTRY)
		snprintf(text + at, PLACE_TEXT - at, ", entry %u", damage->index);
}

/* The sectors are known only where the data are damaged, not the headers. */
static bool read_range(const struct log_check *check, const struct wl_damage *damage,
		       struct wl_entry *entry)
{
	return damage->kind == WL_BAD_DATA &&
	       !wl_entry_read(check->wl, damage->gen, damage->id, damage->chunk, damage->index,
			      entry);
}

static void print_finding(const struct log_check *check, const struct wl_damage *damage)
{
	char place[PLACE_TEXT];
	struct wl_entry entry;

	say_place(damage, place);
	printf("  %s %s\n", place, damage->why);
	if (damage->id)
		printf("      generation's identifier: %llu\n", damage->id);
	if (read_range(check, damage, &entry))
		printf("      written: %llu sectors from %llu\n", entry.nr_sectors, entry.sector);
}

static void list_finding(const struct log_check *check, const struct wl_damage *damage)
{
	json_object *json = json_object_new_object();
	struct wl_entry entry;

	json_add_text(json, "what", kinds[damage->kind].name);
	json_add_text(json, "problem", damage->why);
	json_add_number(json, damage->kind == WL_BAD_SUPER ? "superblock" : "generation", damage->gen);
	if (damage->id)
		json_add_number(json, "identifier", damage->id);
	if (damage->kind >= WL_BAD_CHUNK)
		json_add_number(json, "chunk", damage->chunk);
	if (damage->kind >= WL_BAD_ENTRY)
		json_add_number(json, "entry", damage->index);
	if (read_range(check, damage, &entry)) {
		json_add_number(json, "sector", entry.sector);
		json_add_number(json, "nr_sectors", entry.nr_sectors);
	}
	json_object_array_add(check->findings.list, json);
}

static void finding(void *arg, const struct wl_damage *damage)
{
	struct log_check *check = arg;

	if (!findings_count(&check->findings, damage->kind))
		return;
	if (check->findings.list) {
		list_finding(check, damage);
	} else {
		progress_pause();
		print_finding(check, damage);
		progress_go_on();
	}
}

static void print_head(const char *path, const struct wl *wl)
{
	char uuid[37], origin[2 * WL_ORIGIN_ID_SIZE + 1], size[SIZE_TEXT];

	log_origin(origin, wl->super.origin_id);
	print_of(path, "write log %s, %u generations of %u chunks of %s, ",
		 uuid_text(uuid, wl->super.uuid), wl->nr_gens, wl->nr_chunks,
		 size_text(size, wl->chunk_size));
	if (wl_is_bound(wl))
		printf("for an origin of %llu sectors%s%s\n", (u64)le64_to_cpu(wl->super.origin_sectors),
		       *origin ? ", " : "", origin);
	else
		puts("for no origin yet");
}

static void print_verdict(const struct findings *findings, u64 found, const struct log_counts *counts)
{
	char size[SIZE_TEXT];

	findings_print_rest(findings);
	print_of(findings->path, "%llu write%s (%s), %llu discard%s to replay\n", counts->writes,
		 PLURAL(counts->writes), size_text(size, counts->bytes), counts->discards,
		 PLURAL(counts->discards));
	findings_conclude(findings, found);
	/* A damaged copy of the superblock is no loss. */
	if (findings->nr == findings->of_kind[WL_BAD_SUPER])
		return;
	puts("  Copy the device first (dd). The target refuses such a log. To have it replay all that is whole:");
	printf("      forebay writelog create --option on_damage=skip NAME ORIGIN %s\n"
	       "  Check the file system afterwards.\n", in_shell(findings->path));
}

static void print_verdict_json(const struct log_check *check, u64 found, const struct log_counts *counts)
{
	json_object *json = json_object_new_object();

	json_add_text(json, "device", check->findings.path);
	json_add_flag(json, "clean", !found);
	log_describe(check->wl, counts, json);
	json_object_object_add(json, "findings", check->findings.list);
	print_json(json);
}

static enum exit_status check_log(const char *path, const struct wl *wl, bool json)
{
	struct wl_stream *streams = malloc(sizeof(*streams) * wl->nr_chunks);
	struct log_check check = { .wl = wl, .findings = { .path = path, .kinds = kinds } };
	struct progress progress;
	struct log_counts counts;
	u64 found;

	if (!streams) {
		problem("not enough memory to check %s: a generation has %u chunks", path, wl->nr_chunks);
		advice("Free some, or check a copy of the log on a machine that has more.");
		return FAILED;
	}
	if (json)
		check.findings.list = json_object_new_array();
	else
		print_head(path, wl);
	progress_begin(&progress, path, "being checked");
	found = wl_check(wl, streams, finding, &check);
	free(streams);
	progress_end(&progress);
	if (!log_count(path, wl, &counts))
		return FAILED;
	if (json)
		print_verdict_json(&check, found, &counts);
	else
		print_verdict(&check.findings, found, &counts);
	return found ? LEFT : DONE;
}

/* A log that can't even be opened is an inconsistency. A device that is no log is none. */
static enum exit_status cannot_open(const struct device *dev, enum wl_error err, bool json)
{
	bool ours = err == WL_E_CORRUPT || err == WL_E_GEOMETRY;

	if (ours && json)
		print_superblock_finding(dev->path, "what", wl_strerror(err));
	problem("%s: %s", dev->path, wl_strerror(err));
	if (err == WL_E_PAGESTORE)
		advice("`forebay check %s` checks that.", in_shell(dev->path));
	if (ours)
		advise_unopened(dev, err != WL_E_GEOMETRY, "writelog format");
	return ours ? LEFT : FAILED;
}

static enum exit_status check(const struct verb *verb, int argc, char **argv)
{
	unsigned int flags = 0;
	enum exit_status status;
	bool json = false;
	struct device dev;
	enum wl_error err;
	struct wl wl;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_FORCE)
			flags = DEVICE_SHARED;
		else
			json = true;
	}
	if (argc - optind != 1)
		return usage_problem(verb, "expected one device or image");
	if (!device_open(&dev, argv[optind], flags))
		return FAILED;
	err = wl_open(&wl, dev.base, dev.size, WL_OPEN_READ_ONLY);
	if (err)
		status = cannot_open(&dev, err, json);
	else
		status = check_log(dev.path, &wl, json);
	device_close(&dev);
	return status;
}

const struct verb verb_writelog_check = {
	.name = "writelog check",
	.arguments = "[--force] [--json] DEVICE|IMAGE",
	.summary = "verify a write log that is not in use; changes nothing",
	.help = "Reads a whole write log and says what does not fit together. Writes nothing. If it\n"
		"takes long it says that it still goes on.\n"
		"Exit status: 0 clean, 4 inconsistent, 8 could not be checked, 16 wrong usage.\n"
		"\n"
		"  --force             check it even if it is in use: what changes meanwhile may look\n"
		"                      wrong without being so\n"
		"  --json              report in JSON\n",
	.options = options,
	.run = check,
};

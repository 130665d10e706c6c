// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay check: reads a whole store with core's own check, writes nothing, and
 * explains what it found. With --repair, repair.c then sets that aside.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "message.h"
#include "repair.h"
#include "signature.h"
#include "store.h"
#include "verb.h"

enum { OPT_FORCE = 1, OPT_JSON, OPT_REPAIR, OPT_YES };

static const struct option options[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "repair", no_argument, NULL, OPT_REPAIR },
	{ "yes", no_argument, NULL, OPT_YES },
	OPTION_HELP,
	{ }
};

/* Findings printed one by one; behind that, people want the number. */
#define MOST_LINES	50

/* The kinds of record that ps_check() reports, and what their damage means. */
static const struct kind {
	const char *name;
	const char *meaning;
} kinds[] = {
	{ "superblock",
	  "The superblock is there twice; a damaged copy is rewritten from the other at the next mount." },
	{ "file record",
	  "A file record says which lower file pages belong to; a damaged one forbids mounting." },
	{ "page record",
	  "A page record says which page of which file is here; a damaged one forbids mounting." },
};

struct findings {
	const struct ps *ps;
	const char *path;
	u64 of_kind[ARRAY_SIZE(kinds)];
	u64 printed;
	json_object *list;		/* NULL: print them */
	struct damage *damage;		/* NULL, or what is to be repaired: then all are printed */
};

__printf(3, 4)
static void append(char *text, size_t size, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, size - len, format, args);
	va_end(args);
}

static void describe_file(const struct ps *ps, u32 file, char *text, size_t size)
{
	const struct ps_file_onmedia *rec = &ps->files[file];
	u32 len = min_t(u32, rec->len, PS_HANDLE_MAX);
	u64 commit = le64_to_cpu(rec->commit), bytes = le64_to_cpu(rec->size);

	append(text, size, "says: state %llu, generation %llu, size %s %llu, handle type %u:",
	       commit & PS_FILE_STATE_MASK, commit >> PS_FILE_GEN_SHIFT,
	       bytes & PS_SIZE_EXACT ? "exactly" : "at least", bytes & ~PS_SIZE_EXACT, rec->type);
	for (u32 i = 0; i < len; i++)
		append(text, size, " %02x", rec->handle[i]);
}

static void describe_page(const struct ps *ps, u32 page, char *text, size_t size)
{
	static const char *const states[] = { "free", "out-of-sync", "clean", "no known state" };
	u64 commit = le64_to_cpu(ps->pages[page].commit);
	u64 index = commit >> PS_PAGE_INDEX_SHIFT;

	append(text, size, "says: %s, file record %llu, page %llu of the file (from byte %llu)",
	       states[commit & PS_PAGE_STATE_MASK],
	       commit >> PS_PAGE_FILE_SHIFT & (PS_MAX_FILES - 1), index, index << PS_PAGE_SHIFT);
}

/* What the record says of itself, believed or not. */
static void describe(const struct ps *ps, const char *what, u64 number, char *text, size_t size)
{
	*text = '\0';
	if (!strcmp(what, "file record"))
		describe_file(ps, number, text, size);
	else if (!strcmp(what, "page record"))
		describe_page(ps, number, text, size);
}

static void finding(void *arg, const char *what, u64 number, const char *why)
{
	struct findings *findings = arg;
	char detail[256];
	json_object *json;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		findings->of_kind[i] += !strcmp(what, kinds[i].name);
	if (findings->damage)
		damage_note(findings->damage, what, number);
	else if (!findings->list && findings->printed++ >= MOST_LINES)
		return;
	describe(findings->ps, what, number, detail, sizeof(detail));
	if (!findings->list) {
		printf("  %s %llu %s\n", what, number, why);
		if (*detail)
			printf("      %s\n", detail);
		return;
	}
	json = json_object_new_object();
	json_object_object_add(json, "record", json_object_new_string(what));
	json_object_object_add(json, "number", json_object_new_uint64(number));
	json_object_object_add(json, "problem", json_object_new_string(why));
	json_object_object_add(json, "detail", json_object_new_string(detail));
	json_object_array_add(findings->list, json);
}

static void print_head(const struct findings *findings)
{
	const struct ps *ps = findings->ps;
	char cache[37], lower[37];

	printf("%s: cache %s, %u pages, %u file records, %s%s\n", findings->path,
	       uuid_text(cache, ps->super.cache_uuid), ps->nr_pages, ps->nr_files,
	       ps_is_bound(ps) ? "for lower file system " : "for no lower file system yet",
	       ps_is_bound(ps) ? uuid_text(lower, ps->super.lower_uuid) : "");
}

static void print_verdict(const struct findings *findings, u64 found,
			  const struct store_counts *counts)
{
	if (findings->printed > MOST_LINES)
		printf("  and %llu more; --json lists them all\n", findings->printed - MOST_LINES);
	printf("%s: %llu file%s, %llu page%s out-of-sync, %llu clean, %llu free\n", findings->path,
	       counts->files_used, PLURAL(counts->files_used), counts->pages_out_of_sync,
	       PLURAL(counts->pages_out_of_sync), counts->pages_clean, counts->pages_free);
	print_conclusion(findings->path, found);
	if (!found)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (findings->of_kind[i])
			printf("  %s\n", kinds[i].meaning);
	puts("  A power cut leaves nothing of this kind: suspect the device, or something that wrote to it.");
	if (!findings->damage && found > findings->of_kind[0])
		printf("  Copy the device first (dd); `forebay check --repair %s` gives up these records alone.\n",
		       findings->path);
}

static void print_verdict_json(const struct findings *findings, u64 found,
			       const struct store_counts *counts)
{
	json_object *json = json_object_new_object();

	json_object_object_add(json, "device", json_object_new_string(findings->path));
	json_object_object_add(json, "clean", json_object_new_boolean(!found));
	store_describe(findings->ps, counts, json);
	json_object_object_add(json, "findings", findings->list);
	print_json(json);
}

static enum exit_status check_store(const char *path, const struct ps *ps, bool json,
				    struct damage *damage)
{
	u32 *scratch = malloc(sizeof(*scratch) * max_t(u64, ps->nr_pages, ps->nr_files));
	struct findings findings = { .ps = ps, .path = path, .damage = damage };
	struct store_counts counts;
	u64 found;

	if (!scratch) {
		problem("not enough memory to check %u pages", ps->nr_pages);
		return FAILED;
	}
	if (json)
		findings.list = json_object_new_array();
	else
		print_head(&findings);
	found = ps_check(ps, scratch, finding, &findings);
	free(scratch);
	store_count(ps, &counts);
	if (json)
		print_verdict_json(&findings, found, &counts);
	else
		print_verdict(&findings, found, &counts);
	return found ? LEFT : DONE;
}

/* A cache that can't even be opened is an inconsistency, somebody else's device is not. */
static enum exit_status cannot_open(const struct device *dev, enum ps_error err, bool json)
{
	bool ours = err == PS_E_CORRUPT || err == PS_E_GEOMETRY;
	char text[200];

	if (ours && json)
		print_superblock_finding(dev->path, "record", ps_strerror(err));
	problem("%s: %s", dev->path, ps_strerror(err));
	if (err == PS_E_FOREIGN && signature_find(dev->fd, text, sizeof(text)) > 0)
		advice("It holds %s.", text);
	if (ours)
		advice("Copy the device first (dd); `forebay format --force %s` makes a new cache.",
		       dev->path);
	return ours ? LEFT : FAILED;
}

static enum exit_status repair_store(const struct device *dev, const struct ps *ps, bool yes)
{
	enum exit_status status;
	struct damage damage;

	if (!damage_begin(&damage, ps))
		return FAILED;
	status = check_store(dev->path, ps, false, &damage);
	if (status == LEFT)
		status = damage_repair(&damage, dev, yes);
	damage_end(&damage);
	return status;
}

static enum exit_status check(const struct verb *verb, int argc, char **argv)
{
	bool json = false, repair = false, yes = false;
	unsigned int flags = 0;
	enum exit_status status;
	struct device dev;
	enum ps_error err;
	struct ps ps;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_FORCE)
			flags = DEVICE_SHARED;
		json |= option == OPT_JSON;
		repair |= option == OPT_REPAIR;
		yes |= option == OPT_YES;
	}
	if (repair && (flags || json))
		return usage_problem(verb, "--repair goes with neither --force nor --json");
	if (yes && !repair)
		return usage_problem(verb, "--yes goes with --repair");
	if (repair)
		flags = DEVICE_WRITE;
	if (argc - optind != 1)
		return usage_problem(verb, "want one device or image");
	if (!device_open(&dev, argv[optind], flags))
		return FAILED;
	err = ps_open(&ps, dev.base, dev.size, PS_OPEN_READ_ONLY);
	if (err)
		status = cannot_open(&dev, err, json);
	else if (repair)
		status = repair_store(&dev, &ps, yes);
	else
		status = check_store(dev.path, &ps, json, NULL);
	device_close(&dev);
	return status;
}

const struct verb verb_check = {
	.name = "check",
	.arguments = "[--force] [--json] [--repair] [--yes] DEVICE|IMAGE",
	.summary = "verify a cache that is not mounted, and repair it if told so",
	.help = "Reads a whole cache and says what does not fit together. Writes nothing, unless\n"
		"with --repair.\n"
		"Exit status: 0 clean, 1 repaired, 4 inconsistent, 8 could not be checked,\n"
		"16 wrong usage.\n"
		"\n"
		"  --force             check it though it is mounted: what changes meanwhile may\n"
		"                      look wrong without being so\n"
		"  --json              report in JSON\n"
		"  --repair            list the damaged records and, after confirmation, set them\n"
		"                      aside: what they hold is lost, everything else stays\n"
		"  --yes               confirm --repair\n",
	.options = options,
	.run = check,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay check: reads a whole store with core's check, writes nothing, and explains the findings.
 * check_names.c reads the name log. With --repair, repair.c then sets damaged records aside.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/message.h"
#include "base/progress.h"
#include "base/shell.h"
#include "device/findings.h"
#include "device/store.h"
#include "sys/signature.h"
#include "sys/sysfs.h"
#include "check_names.h"
#include "repair.h"

enum { OPT_FORCE = 1, OPT_JSON, OPT_REPAIR, OPT_YES };

static const struct option options[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "repair", no_argument, NULL, OPT_REPAIR },
	{ "yes", no_argument, NULL, OPT_YES },
	OPTION_HELP,
	{ }
};

/*
 * What ps_check() reports, by the name it uses, and what the damage means. The last is
 * check_bad_blocks()'s.
 */
static const struct finding_kind kinds[] = {
	{ "superblock",
	  "The superblock is there twice; a damaged copy is rewritten from the other at the next mount." },
	{ "file record",
	  "A file record says which lower file pages belong to; a damaged one forbids mounting." },
	{ "page record",
	  "A page record says which page of which file is here; a damaged one forbids mounting." },
	{ NAMES_HEADER,
	  "The name log's header is there twice; the next mount rewrites a damaged copy from the other." },
	{ NAMES_KIND,
	  "The name log has changes that the lower file system may lack; a damaged one forbids mounting." },
	{ "page", NULL },
};

enum { KIND_FILE = 1, KIND_PAGE_RECORD, KIND_NAMES_HEADER, KIND_NAMES };

struct store_check {
	const struct ps *ps;
	struct findings findings;
	struct damage *damage;		/* NULL, or what is to be repaired */
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
	struct ps_file_onmedia rec;
	u64 commit, bytes;
	s64 time;

	if (!pm_read(&rec, &ps->files[file], sizeof(rec))) {
		append(text, size, "cannot be read: a bad block");
		return;
	}
	commit = le64_to_cpu(rec.commit);
	bytes = le64_to_cpu(rec.size);
	time = (s64)le64_to_cpu(rec.time);
	append(text, size, "says: state %llu, generation %llu, size %s %llu, ",
	       commit & PS_FILE_STATE_MASK, commit >> PS_FILE_GEN_SHIFT,
	       bytes & PS_SIZE_EXACT ? "exactly" : "at least", bytes & ~PS_SIZE_EXACT);
	if (time)
		append(text, size, "changed at %lld ns since 1970, ", time);
	append(text, size, "handle type %u:", rec.type);
	for (u32 i = 0; i < min_t(u32, rec.len, PS_HANDLE_MAX); i++)
		append(text, size, " %02x", rec.handle[i]);
}

static void describe_page(const struct ps *ps, u32 page, char *text, size_t size)
{
	static const char *const states[] = { "free", "out-of-sync", "clean", "no known state" };
	struct ps_page_onmedia rec;
	u64 commit, index;

	if (!pm_read(&rec, &ps->pages[page], sizeof(rec))) {
		append(text, size, "cannot be read: a bad block");
		return;
	}
	commit = le64_to_cpu(rec.commit);
	index = commit >> PS_PAGE_INDEX_SHIFT;
	append(text, size, "says: %s, file record %llu, page %llu of the file (from byte %llu)",
	       states[commit & PS_PAGE_STATE_MASK],
	       commit >> PS_PAGE_FILE_SHIFT & (PS_MAX_FILES - 1), index, index << PS_PAGE_SHIFT);
}

/* The contents of the record, whether or not they are credible. */
static void describe(const struct ps *ps, const char *what, u64 number, char *text, size_t size)
{
	*text = '\0';
	if (!strcmp(what, "file record"))
		describe_file(ps, number, text, size);
	else if (!strncmp(what, "page", 4))
		describe_page(ps, number, text, size);
}

static unsigned int kind_of(const char *what)
{
	unsigned int kind = 0;

	while (kind + 1 < ARRAY_SIZE(kinds) && strcmp(what, kinds[kind].name))
		kind++;
	return kind;
}

static void show(struct store_check *check, const char *what, u64 number, const char *why, const char *detail)
{
	json_object *json;

	if (!check->findings.list) {
		progress_pause();
		printf("  %s %llu %s\n", what, number, why);
		if (*detail)
			printf("      %s\n", detail);
		progress_go_on();
		return;
	}
	json = json_object_new_object();
	json_add_text(json, "record", what);
	json_add_number(json, "number", number);
	json_add_text(json, "problem", why);
	json_add_text(json, "detail", detail);
	json_object_array_add(check->findings.list, json);
}

static void finding(void *arg, const char *what, u64 number, const char *why)
{
	struct store_check *check = arg;
	bool shown = findings_count(&check->findings, kind_of(what));
	char detail[256];

	if (check->damage)
		damage_note(check->damage, what, number);
	if (!shown)
		return;
	describe(check->ps, what, number, detail, sizeof(detail));
	show(check, what, number, why, detail);
}

static void names_finding(void *arg, const char *what, u64 number, const char *why, const char *detail)
{
	struct store_check *check = arg;

	if (check->damage)
		check->damage->names++;
	if (findings_count(&check->findings, strcmp(what, NAMES_HEADER) ? KIND_NAMES : KIND_NAMES_HEADER))
		show(check, what, number, why, detail);
}

/*
 * Reports pages in bad sectors that only the cache holds: they are lost. The device begins at sector @start.
 * Pages before @next were looked at, for earlier sectors. Returns how many are lost.
 */
static u64 find_lost(struct store_check *check, u64 sector, u64 sectors, u64 start, u64 *next)
{
	const struct ps *ps = check->ps;
	u64 data = (start << 9) + (ps->data - ps->base);	/* on the disk */
	u64 begin = sector << 9, end = (sector + sectors) << 9, lost = 0;
	u64 page = begin > data ? (begin - data) >> PS_PAGE_SHIFT : 0;
	struct ps_page_info info;

	for (page = max_t(u64, page, *next); page < ps->nr_pages && data + (page << PS_PAGE_SHIFT) < end;
	     page++) {
		*next = page + 1;
		if (ps_page_read(ps, page, &info) || info.state != PS_PAGE_OUT_OF_SYNC)
			continue;
		finding(check, "page", page, "is lost: the device has a bad block there");
		lost++;
	}
	return lost;
}

/* The kernel's list of bad blocks; NULL: images and mapped devices have none. A partition has its disk's. */
static FILE *open_bad_blocks(dev_t rdev, u64 *start)
{
	char path[PATH_MAX], text[32];
	FILE *list;

	*start = 0;
	list = fopen(kernel_path(path, "/sys/dev/block/%u:%u/badblocks", major(rdev), minor(rdev)), "re");
	if (list || !disk_attribute(rdev, "start", text, sizeof(text)))
		return list;
	*start = strtoull(text, NULL, 10);
	return fopen(kernel_path(path, "/sys/dev/block/%u:%u/../badblocks", major(rdev), minor(rdev)), "re");
}

static u64 check_bad_blocks(struct store_check *check)
{
	unsigned long long sector, sectors;
	u64 start, lost = 0, next = 0;
	struct stat st;
	FILE *list;

	if (stat(check->findings.path, &st) || !S_ISBLK(st.st_mode))
		return 0;
	list = open_bad_blocks(st.st_rdev, &start);
	if (!list)
		return 0;
	while (fscanf(list, "%llu %llu", &sector, &sectors) == 2)
		lost += find_lost(check, sector, sectors, start, &next);
	fclose(list);
	return lost;
}

static void print_head(const char *path, const struct ps *ps)
{
	char cache[37], lower[37];

	print_of(path, "cache %s, %u pages, %u file records, %s%s\n",
		 uuid_text(cache, ps->super.cache_uuid), ps->nr_pages, ps->nr_files,
		 ps_is_bound(ps) ? "for lower file system " : "for no lower file system yet",
		 ps_is_bound(ps) ? uuid_text(lower, ps->super.lower_uuid) : "");
}

/* Changes that wait for the next mount are no damage. */
static void print_names(const char *path, const struct store_counts *counts)
{
	char size[SIZE_TEXT];

	if (!counts->names_size)
		return;
	print_of(path, "name log of %s", size_text(size, counts->names_size));
	if (counts->names_damaged)
		puts(", damaged");
	else if (counts->names_records)
		printf(" holds %llu change%s of names; the next mount replays %s\n", counts->names_records,
		       PLURAL(counts->names_records), counts->names_records == 1 ? "it" : "them");
	else
		puts(", empty");
}

static void print_verdict(const struct store_check *check, u64 found, u64 lost,
			  const struct store_counts *counts)
{
	const struct findings *findings = &check->findings;

	findings_print_rest(findings);
	print_of(findings->path, "%llu file%s, %llu page%s out-of-sync, %llu clean, %llu free\n",
		 counts->files_used, PLURAL(counts->files_used), counts->pages_out_of_sync,
		 PLURAL(counts->pages_out_of_sync), counts->pages_clean, counts->pages_free);
	print_names(findings->path, counts);
	if (found || !lost)
		findings_conclude(findings, found);
	if (!check->damage && (findings->of_kind[KIND_FILE] || findings->of_kind[KIND_PAGE_RECORD]))
		printf("  Copy the device first (dd); `forebay check --repair %s` gives up these records alone.\n",
		       in_shell(findings->path));
	if (lost)
		print_of(findings->path,
			 "%s%llu page%s of files lost%s; a mount keeps the rest, and dmesg then names the files\n",
			 style(stdout, RED), lost, PLURAL(lost), plain(stdout));
}

static void print_verdict_json(const struct store_check *check, const struct store_counts *counts)
{
	json_object *json = json_object_new_object();

	json_add_text(json, "device", check->findings.path);
	json_add_flag(json, "clean", !check->findings.nr);
	store_describe(check->ps, counts, json);
	json_object_object_add(json, "findings", check->findings.list);
	print_json(json);
}

static enum exit_status check_store(const char *path, const struct ps *ps, bool json, struct damage *damage)
{
	u32 *scratch = malloc(sizeof(*scratch) * max_t(u64, ps->nr_pages, ps->nr_files));
	struct store_check check = {
		.ps = ps,
		.findings = { .path = path, .kinds = kinds, .all = damage, .repairs = damage },
		.damage = damage,
	};
	struct store_counts counts;
	struct progress progress;
	u64 found, lost;

	if (!scratch) {
		problem("not enough memory to check %u pages", ps->nr_pages);
		return FAILED;
	}
	if (json)
		check.findings.list = json_object_new_array();
	else
		print_head(path, ps);
	progress_begin(&progress, path, "being checked");
	found = ps_check(ps, scratch, finding, &check);
	free(scratch);
	found += check_names(ps, names_finding, &check);
	lost = check_bad_blocks(&check);
	progress_end(&progress);
	store_count(path, ps, &counts);
	if (json)
		print_verdict_json(&check, &counts);
	else
		print_verdict(&check, found, lost, &counts);
	return found || lost ? LEFT : DONE;
}

/* A cache that can't even be opened is an inconsistency. A device that is no cache is none. */
static enum exit_status cannot_open(const struct device *dev, enum ps_error err, bool json)
{
	bool ours = err == PS_E_CORRUPT || err == PS_E_GEOMETRY;
	char text[200];

	if (ours && json)
		print_superblock_finding(dev->path, "record", ps_strerror(err));
	problem("%s: %s", dev->path, ps_strerror(err));
	if (err == PS_E_WRITELOG)
		advice("`forebay writelog check %s` checks that.", in_shell(dev->path));
	if (err == PS_E_FOREIGN && signature_find(dev->fd, text, sizeof(text)) > 0)
		advice("It holds %s.", text);
	if (ours)
		advise_unopened(dev, err != PS_E_GEOMETRY, "format");
	return ours ? LEFT : FAILED;
}

/* --repair doesn't write to the name log: it gives up single records, and a log is all or nothing. */
static enum exit_status names_are_left(const char *path)
{
	problem("%s: the damaged name log was left as it is", path);
	advice("A mount rewrites a damaged header copy. For other damage, `mount -o names=discard` gives up the log's changes.");
	return LEFT;
}

static enum exit_status repair_store(const struct device *dev, const struct ps *ps, bool yes)
{
	enum exit_status status;
	struct damage damage;

	if (!damage_begin(&damage, ps))
		return FAILED;
	status = check_store(dev->path, ps, false, &damage);
	if (status == LEFT && (damage.nr_files || damage.nr_pages || damage.supers))
		status = damage_repair(&damage, dev, yes);
	if (status == REPAIRED && damage.lost)
		status = LEFT;
	damage_end(&damage);
	return damage.names && status != FAILED ? names_are_left(dev->path) : status;
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
		return usage_problem(verb, "--repair cannot be combined with --force or --json");
	if (yes && !repair)
		return usage_problem(verb, "--yes needs --repair");
	if (repair)
		flags = DEVICE_WRITE;
	if (argc - optind != 1)
		return usage_problem(verb, "expected one device or image");
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
	.summary = "verify a cache that is not mounted, and repair it on request",
	.help = "Reads a whole cache and says what does not fit together. Writes nothing, unless\n"
		"with --repair.\n"
		"Exit status: 0 clean, 1 repaired, 4 inconsistent, 8 could not be checked,\n"
		"16 wrong usage.\n"
		"\n"
		"  --force             check it even if it is mounted: what changes meanwhile may\n"
		"                      look wrong without being so\n"
		"  --json              report in JSON\n"
		"  --repair            list the damaged records and, after confirmation, set them\n"
		"                      aside: what they hold is lost, everything else stays\n"
		"  --yes               confirm --repair\n",
	.options = options,
	.run = check,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay doctor: runs every check and prints the findings. A finding names an object, what was found, and
 * the command that mends it. Nothing on the machine is changed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/message.h"
#include "base/verb.h"
#include "doctor.h"

enum { OPT_JSON = 1 };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

/* Every check. docs/man/forebay-doctor.8 lists the names. */
static const struct check {
	const char *name;
	const char *about;
	check_fn run;
} checks[] = {
	{ "module", "the modules are installed for the kernel that runs", check_module },
	{ "next-kernel", "the modules are installed for the newest kernel", check_next_kernel },
	{ "module-loaded", "the modules are loaded that fstab and units need", check_module_loaded },
	{ "module-version", "the modules that are loaded are those that are installed",
	  check_module_version },
	{ "signature", "the modules are signed if the kernel demands that", check_signature },
	{ "memory-mode", "persistent memory is in a mode that Forebay can use", check_memory_mode },
	{ "memory-use", "persistent memory is there, and nothing else is on it", check_memory_use },
	{ "alignment", "persistent memory can be mapped in large pages", check_alignment },
	{ "persistence", "the platform flushes its write queues when the power fails", check_persistence },
	{ "bad-blocks", "persistent memory has no bad blocks", check_bad_blocks },
	{ "volatile", "caches and write logs survive a power cut", check_volatile },
	{ "distance", "persistent memory and disk are at the same processor", check_distance },
	{ "writeback", "storage takes what caches write back", check_writeback },
	{ "lost-pages", "caches can read their pages and know their files", check_lost_pages },
	{ "cache-size", "caches are large enough for what is made durable", check_cache_size },
	{ "name-log", "the lower file system can have the name log of its cache", check_name_log },
	{ "unmounted", "caches that hold data are mounted", check_unmounted },
	{ "barriers", "lower file systems flush their disks", check_barriers },
	{ "lower-options", "lower file systems have no options that cost time", check_lower_options },
	{ "lower-type", "lower file systems are of a type that Forebay can use", check_lower_type },
	{ "casefold", "lower file systems take names byte for byte", check_casefold },
	{ "fstab-cache", "lines of fstab name a cache that stays the same", check_fstab_cache },
	{ "fstab-order", "lower file systems are mounted before", check_fstab_order },
	{ "fstab-nofail", "lower file system and mount agree about nofail", check_fstab_nofail },
	{ "fstab-unit", "lines of fstab ask for the unit of their device", check_fstab_unit },
	{ "units", "the units of write logs and transit caches are installed and started", check_units },
	{ "settings", "the settings of units name devices that exist", check_settings },
	{ "targets", "write logs and transit caches in use are healthy and have space", check_targets },
	{ "origin-visible", "no origin can be mounted without its write log", check_origin_visible },
	{ "origin-fstab", "no line of fstab names the origin of a write log", check_origin_fstab },
	{ "origin-lvm", "LVM doesn't use the origin of a write log", check_origin_lvm },
};

static const char *const severities[] = { [NOTE] = "note", [WARNING] = "warning", [ERROR] = "error" };

/* A text by its format, to be freed. */
static char *text_of(const char *format, va_list args)
{
	char *text = NULL;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

/**
 * found - report a finding
 * @doctor: a check of it runs
 * @severity: how bad it is
 * @object: device, file or mount point
 * @format: what was found about @object: a sentence without full stop, as for printf()
 */
void found(struct doctor *doctor, enum severity severity, const char *object, const char *format, ...)
{
	json_object *finding = json_object_new_object();
	va_list args;
	char *text;

	va_start(args, format);
	text = text_of(format, args);
	va_end(args);
	json_add_text(finding, "check", doctor->check);
	json_add_text(finding, "severity", severities[severity]);
	json_add_text(finding, "object", object);
	json_add_text(finding, "found", text ?: "");
	json_object_object_add(finding, "mend", json_object_new_array());
	json_object_array_add(doctor->findings, finding);
	doctor->nr_errors += severity == ERROR;
	doctor->nr_warnings += severity == WARNING;
	doctor->nr_notes += severity == NOTE;
	free(text);
}

/**
 * mend - say what mends the last finding; may be called again for a further step
 * @doctor: from found()
 * @format: a command line, or "in FILE: what to write there", as for printf()
 */
void mend(struct doctor *doctor, const char *format, ...)
{
	size_t n = json_object_array_length(doctor->findings);
	json_object *finding = json_object_array_get_idx(doctor->findings, n - 1);
	va_list args;
	char *text;

	va_start(args, format);
	text = text_of(format, args);
	va_end(args);
	json_object_array_add(json_object_object_get(finding, "mend"), json_object_new_string(text ?: ""));
	free(text);
}

/**
 * unseen - report that a check could not examine something
 * @doctor: a check of it runs
 * @object: device or file
 * @format: the reason, as for printf()
 */
void unseen(struct doctor *doctor, const char *object, const char *format, ...)
{
	json_object *one = json_object_new_object();
	va_list args;
	char *why;

	va_start(args, format);
	why = text_of(format, args);
	va_end(args);
	json_add_text(one, "check", doctor->check);
	json_add_text(one, "object", object);
	json_add_text(one, "why", why ?: "");
	json_object_array_add(doctor->unseen, one);
	free(why);
}

static void print_finding(json_object *finding)
{
	const char *severity = json_text(finding, "severity");
	const char *colour = !strcmp(severity, "error") ? RED : !strcmp(severity, "warning") ? YELLOW : BOLD;
	json_object *steps = json_object_object_get(finding, "mend");

	printf("%s%s%s ", style(stdout, colour), severity, plain(stdout));
	print_name(json_text(finding, "object"));
	fputs(": ", stdout);
	print_name(json_text(finding, "found"));
	printf(" [%s]\n", json_text(finding, "check"));
	for (size_t i = 0; i < json_object_array_length(steps); i++) {
		fputs("    ", stdout);
		print_name(json_object_get_string(json_object_array_get_idx(steps, i)));
		putchar('\n');
	}
}

static void print_all(const struct doctor *doctor)
{
	size_t nr_unseen = json_object_array_length(doctor->unseen);
	size_t nr = json_object_array_length(doctor->findings);

	for (size_t i = 0; i < nr; i++)
		print_finding(json_object_array_get_idx(doctor->findings, i));
	for (size_t i = 0; i < nr_unseen; i++) {
		json_object *one = json_object_array_get_idx(doctor->unseen, i);

		fputs("not examined ", stdout);
		print_name(json_text(one, "object"));
		fputs(": ", stdout);
		print_name(json_text(one, "why"));
		printf(" [%s]\n", json_text(one, "check"));
	}
	if (nr_unseen && geteuid())
		puts("    sudo forebay doctor");
	printf("%s%zu checks: %u error%s, %u warning%s", nr + nr_unseen ? "\n" : "", ARRAY_SIZE(checks),
	       doctor->nr_errors, PLURAL(doctor->nr_errors), doctor->nr_warnings,
	       PLURAL(doctor->nr_warnings));
	if (doctor->nr_notes)
		printf(", %u note%s", doctor->nr_notes, PLURAL(doctor->nr_notes));
	if (nr_unseen)
		printf(", %zu not examined", nr_unseen);
	putchar('\n');
}

static json_object *list_of_checks(void)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		json_object *one = json_object_new_object();

		json_add_text(one, "name", checks[i].name);
		json_add_text(one, "good", checks[i].about);
		json_object_array_add(list, one);
	}
	return list;
}

static void print_as_json(const struct doctor *doctor)
{
	json_object *all = json_object_new_object();

	json_object_object_add(all, "checks", list_of_checks());
	json_object_object_add(all, "errors", json_object_new_int64(doctor->nr_errors));
	json_object_object_add(all, "warnings", json_object_new_int64(doctor->nr_warnings));
	json_object_object_add(all, "notes", json_object_new_int64(doctor->nr_notes));
	json_object_object_add(all, "findings", json_object_get(doctor->findings));
	json_object_object_add(all, "unseen", json_object_get(doctor->unseen));
	print_json(all);
}

/* A machine is well only if everything could be examined. */
static enum exit_status verdict(const struct doctor *doctor)
{
	if (doctor->nr_errors)
		return FAULTY;
	return doctor->nr_warnings || json_object_array_length(doctor->unseen) ? WARNED : DONE;
}

static enum exit_status doctor_run(const struct verb *verb, int argc, char **argv)
{
	struct doctor doctor = { };
	enum exit_status status;
	bool json = false;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	if (optind < argc)
		return usage_problem(verb, "unexpected argument '%s'", argv[optind]);
	if (!machine_read(&doctor.machine))
		return FAILED;
	doctor.findings = json_object_new_array();
	doctor.unseen = json_object_new_array();
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		doctor.check = checks[i].name;
		checks[i].run(&doctor);
	}
	if (json)
		print_as_json(&doctor);
	else
		print_all(&doctor);
	status = verdict(&doctor);
	json_object_put(doctor.findings);
	json_object_put(doctor.unseen);
	machine_free(&doctor.machine);
	return status;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.arguments = "[--json]",
	.summary = "look for mistakes in how this machine is set up",
	.help = "Looks at kernel, modules, persistent memory, mounts, fstab, units, write logs and\n"
		"transit caches. Each finding names the object, what is wrong, and the command that mends\n"
		"it. Nothing is changed. Without root, the verb says what it could not examine.\n"
		"The exit status is 0 if nothing was found, 1 after warnings or if something could not be\n"
		"examined, 2 after errors. Notes are no mistakes and don't count.\n"
		"\n"
		"  --json              an object with the findings\n",
	.options = options,
	.run = doctor_run,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay metrics: OpenMetrics text about every mount, write log and transit cache in use.
 *
 * The textfile collector of node_exporter reads the older Prometheus format, in which "# UNIT" and "# EOF"
 * are comments. The text has only counters, gauges and histograms, without timestamps, so that the collector
 * takes it, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/latency.h"
#include "base/message.h"
#include "base/verb.h"
#include "family.h"
#include "gather.h"

enum { OPT_OUTPUT = 1 };

#define PAGE_BYTES	4096
#define SECTOR_BYTES	512
#define FIRST_BUCKET	10	/* binary logarithm of ns */
#define LAST_BUCKET	34

static const struct option options[] = {
	{ "output", required_argument, NULL, OPT_OUTPUT },
	OPTION_HELP,
	{ }
};

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* The value of a key in the object, or among the values of its target; NULL if there is none. */
static json_object *value_of(json_object *object, const char *key)
{
	json_object *value = json_object_object_get(object, key);

	return value ?: json_object_object_get(json_object_object_get(object, "values"), key);
}

static void print_label(FILE *to, bool first, const char *name, json_object *value)
{
	const char *text;
	char *escaped, *end;

	if (json_object_is_type(value, json_type_array))
		value = json_object_array_get_idx(value, 0);
	text = value ? json_object_get_string(value) : "";
	escaped = malloc(2 * strlen(text) + 1);
	if (!escaped)
		return;
	end = escaped;
	for (; *text; text++) {
		if (strchr("\\\"\n", *text))
			*end++ = '\\';
		*end++ = *text == '\n' ? 'n' : *text;
	}
	*end = '\0';
	fprintf(to, "%s%s=\"", first ? "" : ",", name);
	print_utf8(to, escaped);
	fputc('"', to);
	free(escaped);
}

static void print_value(FILE *to, const struct family *family, json_object *value)
{
	unsigned long long number = json_object_get_uint64(value);

	switch (family->scale) {
	case AS_IS:
		fprintf(to, " %llu\n", json_object_is_type(value, json_type_boolean) ?
			(unsigned long long)json_object_get_boolean(value) : number);
		break;
	case PAGES:
		fprintf(to, " %llu\n", number * PAGE_BYTES);
		break;
	case SECTORS:
		fprintf(to, " %llu\n", number * SECTOR_BYTES);
		break;
	case NANOSECONDS:
		fprintf(to, " %llu.%09llu\n", number / 1000000000, number % 1000000000);
		break;
	case IS_NOT_ZERO:
		fprintf(to, " %d\n", json_object_get_int64(value) != 0);
		break;
	case IS_TEXT:
		fprintf(to, " %d\n", !strcmp(json_object_get_string(value), family->text));
		break;
	case ONE:
		fputs(" 1\n", to);
		break;
	case HISTOGRAM:		/* print_histogram() */
		break;
	}
}

static void print_labels(FILE *to, const struct source *source, const struct family *family,
			 json_object *object)
{
	const struct label *label;

	for (label = source->labels; label->name; label++)
		print_label(to, label == source->labels, label->name,
			    json_object_object_get(object, label->key));
	for (const char *const *key = family->labels; key && *key; key++)
		print_label(to, false, *key, json_object_object_get(object, *key));
}

/* A name with its labels, before the value. */
static void print_part(FILE *to, const struct source *source, const struct family *family,
		       json_object *object, const char *suffix)
{
	fprintf(to, "%s%s{", family->name, suffix);
	print_labels(to, source, family, object);
	fputc('}', to);
}

/* The same buckets each time, whichever have counted: 1 us to 17 s, and the rest. */
static void print_histogram(FILE *to, const struct source *source, const struct family *family,
			    json_object *object)
{
	json_object *latency = value_of(object, family->key);
	unsigned long long ns = json_number(latency, "ns"), seen = 0;
	uint64_t bins[64] = { };

	latency_bins(latency, 1, bins);
	for (int i = 0; i < 64; i++) {
		seen += bins[i];
		if ((i < FIRST_BUCKET || i > LAST_BUCKET) && i != 63)
			continue;
		fprintf(to, "%s_bucket{", family->name);
		print_labels(to, source, family, object);
		if (i == 63)
			fprintf(to, ",le=\"+Inf\"} %llu\n", seen);
		else
			fprintf(to, ",le=\"%.9g\"} %llu\n", (1ULL << i) / 1e9, seen);
	}
	print_part(to, source, family, object, "_count");
	fprintf(to, " %llu\n", seen);
	print_part(to, source, family, object, "_sum");
	fprintf(to, " %llu.%09llu\n", ns / 1000000000, ns % 1000000000);
}

static void print_sample(FILE *to, const struct source *source, const struct family *family,
			 json_object *object)
{
	print_part(to, source, family, object, family->counter ? "_total" : "");
	print_value(to, family, family->key ? value_of(object, family->key) : NULL);
}

static void print_head(FILE *to, const struct family *family)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
		family->scale == HISTOGRAM ? "histogram" : family->counter ? "counter" : "gauge");
	if (ends_with(family->name, "_bytes"))
		fprintf(to, "# UNIT %s bytes\n", family->name);
	else if (ends_with(family->name, "_seconds"))
		fprintf(to, "# UNIT %s seconds\n", family->name);
}

/* An object without the key, as of an older module, gives no sample. */
static void print_family(FILE *to, const struct source *source, const struct family *family,
			 json_object *objects)
{
	bool any = false;

	for (size_t i = 0; i < json_object_array_length(objects); i++) {
		json_object *object = json_object_array_get_idx(objects, i);

		if (family->key && !value_of(object, family->key))
			continue;
		if (!any)
			print_head(to, family);
		any = true;
		if (family->scale == HISTOGRAM)
			print_histogram(to, source, family, object);
		else
			print_sample(to, source, family, object);
	}
}

/* Prints all metrics of a kind of object, and releases the objects. */
static void print_source(FILE *to, const struct source *source, json_object *objects)
{
	for (const struct family *family = source->families; family->name; family++)
		print_family(to, source, family, objects);
	json_object_put(objects);
}

static void print_all(FILE *to, json_object **groups)
{
	print_source(to, &cache_source, groups[CACHES]);
	print_source(to, &writelog_source, groups[WRITELOGS]);
	print_source(to, &transit_source, groups[TRANSITS]);
	fputs("# EOF\n", to);
}

/* A device or pipe, such as /dev/null or /dev/stdout: it must stay what it is. */
static bool write_in_place(const char *path, json_object **groups)
{
	FILE *file = fopen(path, "we");
	bool good;

	if (file)
		print_all(file, groups);
	good = file && !fflush(file) && !ferror(file);
	if (!good)
		problem("cannot write %s: %s", path, strerror(errno));
	if (file)
		fclose(file);
	return good;
}

/* The new text gets the name of the file at the end: a reader finds the old text or the new one. */
static bool replace_file(const char *path, json_object **groups)
{
	char *temporary = NULL;
	FILE *file = NULL;
	bool good;
	int fd = -1;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		temporary = NULL;
	if (temporary)
		fd = mkostemp(temporary, O_CLOEXEC);
	if (fd >= 0)
		file = fdopen(fd, "w");
	if (file)
		print_all(file, groups);
	good = file && !fchmod(fd, 0644) && !fflush(file) && !ferror(file) && !rename(temporary, path);
	if (!good) {
		problem("cannot write %s: %s", path, strerror(errno));
		if (fd >= 0)
			unlink(temporary);
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	free(temporary);
	return good;
}

/*
 * A symbolic link is followed in /dev only, where /dev/stdout is one. Elsewhere it is replaced: the service
 * runs as root in a folder of Prometheus' user, whose link could lead to a disk.
 */
static bool write_file(const char *path, json_object **groups)
{
	bool in_dev = !strncmp(path, "/dev/", 5);
	struct stat st;

	if ((in_dev ? stat(path, &st) : lstat(path, &st)) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return replace_file(path, groups);
	return write_in_place(path, groups);
}

static enum exit_status metrics(const struct verb *verb, int argc, char **argv)
{
	const char *output = NULL;
	json_object *groups[NR_GROUPS];

	while (next_option(verb, argc, argv) != -1)
		output = optarg;
	if (optind < argc)
		return usage_problem(verb, "unexpected argument '%s'", argv[optind]);
	if (output && !*output)
		return usage_problem(verb, "--output '': expected a file, or - for standard output");
	/* Part of the metrics would look like a part of the devices. */
	if (!gather_groups(groups))
		return FAILED;
	if (output && strcmp(output, "-"))
		return write_file(output, groups) ? DONE : FAILED;
	print_all(stdout, groups);
	return DONE;
}

const struct verb verb_metrics = {
	.name = "metrics",
	.arguments = "[--output FILE]",
	.summary = "print what caches and logs do as OpenMetrics text",
	.help = "Prints OpenMetrics text about every mounted cache, write log and transit cache in use,\n"
		"for Prometheus; with write logs or transit caches this takes root. docs/metrics.md lists\n"
		"the metrics.\n"
		"\n"
		"  --output FILE       replace FILE in one step, for node_exporter's textfile collector;\n"
		"                      a device or pipe is written to, and \"-\" is standard output\n",
	.options = options,
	.run = metrics,
};

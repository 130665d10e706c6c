// SPDX-License-Identifier: GPL-2.0-only
/*
 * The forebay command: finds the verb and runs it. Each verb has its file in the folder of its noun; verbs
 * that two nouns share are in mapped/, and those without a noun in cache/.
 */
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/verb.h"

static const struct verb *const verbs[] = {
	&verb_format, &verb_status, &verb_probe, &verb_check, &verb_drain, &verb_pin, &verb_unpin, &verb_drop,
	&verb_attach, &verb_detach, &verb_advise, &verb_doctor, &verb_metrics, &verb_top,
	&verb_log_preload,
	&verb_writelog_format, &verb_writelog_create, &verb_writelog_status,
	&verb_writelog_check, &verb_writelog_flush, &verb_writelog_resume, &verb_writelog_set,
	&verb_writelog_latency, &verb_writelog_remove,
	&verb_emu_create, &verb_emu_list, &verb_emu_remove, &verb_emu_cut,
	&verb_transit_create, &verb_transit_status, &verb_transit_flush, &verb_transit_set,
	&verb_transit_latency, &verb_transit_remove,
};

/* The first words of verbs that have two words. */
static const struct noun {
	const char *name;
	const char *about;
} nouns[] = {
	{ "writelog",
	  "Looks after write logs: persistent memory in which writes to a block device are durable." },
	{ "emu",
	  "Makes persistent-memory devices of ordinary memory, for trying Forebay out and for tests." },
	{ "transit",
	  "Looks after transit caches: volatile caches in DRAM over block devices that have none." },
};

/* Letters in a verb, at most. */
#define MAX_LETTERS	16

/* How many of the words are the name of the verb; 0: they name another one. */
static int match(const struct verb *verb, int n, char **words)
{
	const char *space = strchr(verb->name, ' ');
	size_t len = space ? (size_t)(space - verb->name) : strlen(verb->name);

	if (!n || strlen(words[0]) != len || strncmp(words[0], verb->name, len))
		return 0;
	if (!space)
		return 1;
	return n > 1 && !strcmp(words[1], space + 1) ? 2 : 0;
}

/* The verb that the words begin with; @used is the number of words in its name. */
static const struct verb *find_verb(int n, char **words, int *used)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		*used = match(verbs[i], n, words);
		if (*used)
			return verbs[i];
	}
	return NULL;
}

static const struct noun *find_noun(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(nouns); i++)
		if (!strcmp(word, nouns[i].name))
			return &nouns[i];
	return NULL;
}

/*
 * The last word of a verb of @noun, or of a verb without a noun if @noun is NULL; NULL for any other verb.
 */
static const char *verb_of(const struct verb *verb, const struct noun *noun)
{
	const char *space = strchr(verb->name, ' ');

	if (!noun)
		return space ? NULL : verb->name;
	return space && !strncmp(verb->name, noun->name, strlen(noun->name)) ? space + 1 : NULL;
}

/* Lists the verbs of @noun, or all verbs if @noun is NULL. */
static void print_help(FILE *to, const struct noun *noun)
{
	fprintf(to, "usage: forebay %s%sVERB [OPTION]... [ARGUMENT]...\n\n", noun ? noun->name : "",
		noun ? " " : "");
	fprintf(to, "%s\n\n", noun ? noun->about :
		"Looks after page caches and write logs in persistent memory, and caches over it.");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!noun || verb_of(verbs[i], noun))
			fprintf(to, "  %-16s %s\n", verbs[i]->name, verbs[i]->summary);
	if (noun)
		fprintf(to, "\n`forebay %s VERB --help` tells more, forebay-%s(8) everything.\n", noun->name,
			noun->name);
	else
		fputs("\n`forebay VERB --help` tells more; forebay(8) lists the man pages.\n"
		      "To use a cache: mount -t forebay -o cache=DEVICE LOWER MOUNTPOINT, see forebay(5).\n",
		      to);
}

static enum exit_status missing_verb(const struct noun *noun)
{
	char list[200] = "";

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verb_of(verbs[i], noun))
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 *list ? ", " : "", verb_of(verbs[i], noun));
	problem("%s needs a verb: %s", noun->name, list);
	advice("`forebay %s --help` describes them.", noun->name);
	return USAGE;
}

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * The edit distance of two words: letters left out, added, replaced, or swapped with their neighbour. A
 * word longer than any verb has the largest distance from all.
 */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int d[MAX_LETTERS + 1][MAX_LETTERS + 1];
	size_t len_a = strlen(a), len_b = strlen(b);

	if (len_a > MAX_LETTERS || len_b > MAX_LETTERS)
		return MAX_LETTERS;
	for (size_t i = 0; i <= len_a; i++)
		for (size_t j = 0; j <= len_b; j++) {
			if (!i || !j) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1);
			d[i][j] = min(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[len_a][len_b];
}

/* One letter in three may be wrong. */
static bool is_near_miss(const char *word, const char *name, unsigned int letters)
{
	size_t longer = strlen(word) > strlen(name) ? strlen(word) : strlen(name);

	return letters <= longer / 3;
}

/*
 * The verb that the user most likely meant, or NULL. A verb that can destroy data is never proposed. If it
 * is the nearest one, no other verb is proposed either, since the user did not mean that one.
 */
static const struct verb *nearest_verb(const struct noun *noun, const char *word)
{
	unsigned int min_letters = MAX_LETTERS;
	const struct verb *nearest = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		const char *name = verb_of(verbs[i], noun);
		unsigned int letters = name ? distance(word, name) : MAX_LETTERS;

		if (letters < min_letters && is_near_miss(word, name, letters)) {
			min_letters = letters;
			nearest = verbs[i];
		}
	}
	return nearest && !nearest->destroys ? nearest : NULL;
}

static enum exit_status unknown_verb(int n, char **words)
{
	const struct noun *noun = find_noun(words[0]);
	const char *last = noun ? words[1] : words[0];
	const struct verb *nearest;

	if (noun && n < 2)
		return missing_verb(noun);
	if (*last == '-')
		problem("unknown option '%s'", last);
	else
		problem("unknown verb '%s%s%s'", noun ? words[0] : "", noun ? " " : "", last);
	nearest = nearest_verb(noun, last);
	if (nearest)
		advice("Did you mean `forebay %s`?", nearest->name);
	advice("`forebay %s%s--help` lists the verbs.", noun ? noun->name : "", noun ? " " : "");
	return USAGE;
}

/* `--help`, or `help` followed by the words of a verb, or by a noun. */
static enum exit_status show_help(int n, char **words)
{
	const struct noun *noun = n ? find_noun(words[0]) : NULL;
	const struct verb *verb;
	int used;

	verb = find_verb(n, words, &used);
	if (!used && n > !!noun && strcmp(words[!!noun], "--help"))
		return unknown_verb(n, words);
	if (used)
		verb_help(verb);
	else
		print_help(stdout, noun);
	return output_written() ? DONE : FAILED;
}

static enum exit_status run(const struct verb *verb, int argc, char **argv)
{
	enum exit_status status;

	message_set_verb(verb->name);
	status = verb->run(verb, argc, argv);
	return output_written() ? status : FAILED;
}

int main(int argc, char **argv)
{
	const struct verb *verb;
	int used;

	if (!reserve_standard_streams())
		return FAILED;
	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	if (argc < 2) {
		print_help(stderr, NULL);
		return USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))
		return show_help(argc - 2, argv + 2);
	if (find_noun(argv[1]) && argc > 2 && !strcmp(argv[2], "--help"))
		return show_help(1, argv + 1);
	if (!strcmp(argv[1], "--version")) {
		puts("forebay " FOREBAY_VERSION);
		return output_written() ? DONE : FAILED;
	}
	verb = find_verb(argc - 1, argv + 1, &used);
	return used ? run(verb, argc - used, argv + used) : unknown_verb(argc - 1, argv + 1);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The forebay command: finds the verb and runs it. One verb a file.
 */
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "verb.h"

static const struct verb *const verbs[] = {
	&verb_format, &verb_status, &verb_check, &verb_drain, &verb_pin, &verb_unpin, &verb_drop,
	&verb_attach, &verb_detach,
	&verb_writelog_format, &verb_writelog_create, &verb_writelog_status,
	&verb_writelog_check, &verb_writelog_flush, &verb_writelog_resume, &verb_writelog_set,
	&verb_writelog_latency, &verb_writelog_remove,
	&verb_emu_create, &verb_emu_list, &verb_emu_remove, &verb_emu_cut,
	&verb_transit_create, &verb_transit_status, &verb_transit_flush, &verb_transit_set,
	&verb_transit_latency, &verb_transit_remove,
};

/* The first words of verbs that have two, and what these are about. */
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

/* So many of the words make up the verb's name; 0: it is another. */
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

/* The verb that the words begin with, and of how many it is made. */
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

/* Its last word, if the verb is one of @noun's, or, if that is NULL, one without a noun; else NULL. */
static const char *verb_of(const struct verb *verb, const struct noun *noun)
{
	const char *space = strchr(verb->name, ' ');

	if (!noun)
		return space ? NULL : verb->name;
	return space && !strncmp(verb->name, noun->name, strlen(noun->name)) ? space + 1 : NULL;
}

/* Only the verbs of @noun, unless it is NULL. */
static void print_help(FILE *to, const struct noun *noun)
{
	fprintf(to, "usage: forebay %s%sVERB [OPTION]... [ARGUMENT]...\n\n", noun ? noun->name : "",
		noun ? " " : "");
	fprintf(to, "%s\n\n", noun ? noun->about :
		"Looks after page caches and write logs in persistent memory, and caches over it.");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!noun || verb_of(verbs[i], noun))
			fprintf(to, "  %-16s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\n`forebay VERB --help` tells more, forebay(8) all.\n", to);
	if (!noun)
		fputs("To use a cache: mount -t forebay -o cache=DEVICE LOWER MOUNTPOINT, see forebay(5).\n",
		      to);
}

static enum exit_status no_verb_behind(const struct noun *noun)
{
	char list[200] = "";

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verb_of(verbs[i], noun))
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 *list ? ", " : "", verb_of(verbs[i], noun));
	problem("%s wants a verb: %s", noun->name, list);
	advice("`forebay %s --help` says what they do.", noun->name);
	return USAGE;
}

/* The verb that most likely was meant: the one that begins likewise. */
static enum exit_status no_such_verb(int n, char **words)
{
	const struct noun *noun = find_noun(words[0]);
	const char *last = noun ? words[1] : words[0];

	if (noun && n < 2)
		return no_verb_behind(noun);
	problem("no such verb: %s%s%s", noun ? words[0] : "", noun ? " " : "", last);
	for (size_t i = 0; i < ARRAY_SIZE(verbs) && *last; i++) {
		const char *name = verb_of(verbs[i], noun);

		if (name && *name == *last) {
			advice("Did you mean `forebay %s`?", verbs[i]->name);
			break;
		}
	}
	advice("`forebay %s%s--help` lists the verbs.", noun ? noun->name : "", noun ? " " : "");
	return USAGE;
}

/* --help, or help with the words of a verb behind it. */
static enum exit_status help(int n, char **words)
{
	const struct verb *verb;
	int used;

	verb = find_verb(n, words, &used);
	if (verb)
		verb_help(verb);
	else
		print_help(stdout, n ? find_noun(words[0]) : NULL);
	return DONE;
}

static enum exit_status run(const struct verb *verb, int argc, char **argv)
{
	enum exit_status status;

	message_set_verb(verb->name);
	status = verb->run(verb, argc, argv);
	if (fflush(stdout) || ferror(stdout)) {
		problem("cannot write to standard output");
		return FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	const struct verb *verb;
	int used;

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	if (argc < 2) {
		print_help(stderr, NULL);
		return USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))
		return help(argc - 2, argv + 2);
	if (find_noun(argv[1]) && argc > 2 && !strcmp(argv[2], "--help"))
		return help(1, argv + 1);
	if (!strcmp(argv[1], "--version")) {
		puts("forebay " FOREBAY_VERSION);
		return DONE;
	}
	verb = find_verb(argc - 1, argv + 1, &used);
	return used ? run(verb, argc - used, argv + used) : no_such_verb(argc - 1, argv + 1);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The forebay command: finds the verb and runs it. One verb a file.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "verb.h"

static const struct verb *const verbs[] = {
	&verb_format, &verb_status, &verb_check, &verb_drain, &verb_pin, &verb_unpin, &verb_drop,
	&verb_attach, &verb_detach,
};

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i]->name, name))
			return verbs[i];
	return NULL;
}

static void print_help(FILE *to)
{
	fputs("usage: forebay VERB [OPTION]... [ARGUMENT]...\n\n"
	      "Looks after persistence-aware page caches in persistent memory.\n\n", to);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(to, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\n`forebay VERB --help` tells more, forebay(8) all.\n"
	      "To use a cache: mount -t forebay -o cache=DEVICE LOWER MOUNTPOINT, see forebay(5).\n",
	      to);
}

/* The verb that most likely was meant: the one that begins likewise. */
static enum exit_status no_such_verb(const char *name)
{
	problem("no such verb: %s", name);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (*name && *name == *verbs[i]->name) {
			advice("Did you mean `forebay %s`? `forebay --help` lists the verbs.",
			       verbs[i]->name);
			return USAGE;
		}
	}
	advice("`forebay --help` lists the verbs.");
	return USAGE;
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

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	if (argc < 2) {
		print_help(stderr);
		return USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		verb = argc > 2 ? find_verb(argv[2]) : NULL;
		if (verb)
			verb_help(verb);
		else
			print_help(stdout);
		return DONE;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("forebay " FOREBAY_VERSION);
		return DONE;
	}
	verb = find_verb(argv[1]);
	return verb ? run(verb, argc - 1, argv + 1) : no_such_verb(argv[1]);
}

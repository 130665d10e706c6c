// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a verb's options, and says what is wrong with them. There are long options only: they are typed
 * rarely and read more often, in scripts.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kind.h"
#include "message.h"
#include "verb.h"

static void print_keys(const struct verb *verb)
{
	puts("KEY and VALUE:");
	for (const struct target_option *option = verb->kind->options; option->key; option++)
		if (verb->keys == KEYS_ALL || option->later)
			printf("  %-19s %s\n", option->key, option->values);
	putchar('\n');
}

/**
 * parse_decimal - read an option's number
 * @text: digits, with a point among them or not
 * @max: the most that it may be; it must be more than 0
 * @number: set
 *
 * Return: false if it is no such number.
 */
bool parse_decimal(const char *text, double max, double *number)
{
	char *end;

	/* strtod() takes blanks, a sign, exponents and hexadecimal digits, too. */
	if (text[strspn(text, "0123456789.")])
		return false;
	*number = strtod(text, &end);
	return end != text && !*end && *number > 0 && *number <= max;
}

/**
 * verb_help - print what a verb does and takes
 * @verb: which
 */
void verb_help(const struct verb *verb)
{
	printf("usage: forebay %s %s\n\n%s", verb->name, verb->arguments, verb->help);
	puts("  --help              show this\n");
	if (verb->keys != KEYS_NONE)
		print_keys(verb);
	printf("forebay-%.*s(8) has the details.\n", (int)strcspn(verb->name, " "), verb->name);
}

/**
 * usage_problem - say what is wrong with a command line
 * @verb: the verb whose command line it is
 * @format: the sentence, as for printf()
 *
 * Return: USAGE, for the verb to return.
 */
enum exit_status usage_problem(const struct verb *verb, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	problem("%s", len < 0 ? "wrong usage" : text);
	advice("usage: forebay %s %s", verb->name, verb->arguments);
	if (len >= 0)
		free(text);
	return USAGE;
}

/*
 * Was the option that getopt_long() refused a long one? @before is the word before optind. Of several letters
 * behind one dash, it is the word before theirs. optopt has the character of a short option; of a long one, 0
 * or its value, which is no character but for --help. A byte beyond ASCII is below 0, or above ' '.
 */
static bool was_long(const char *before)
{
	if (optopt == 'h')
		return !strncmp(before, "--h", 3);
	return optopt >= 0 && optopt < ' ' && !strncmp(before, "--", 2);
}

/* An empty name is a script's variable that is not set, and no file has it. */
static void refuse_empty(const struct verb *verb, int argc, char **argv)
{
	for (int i = optind; i < argc && !verb->runs; i++)
		if (!*argv[i])
			exit(usage_problem(verb, "an argument is empty: is a variable not set?"));
}

/**
 * next_option - the next option on a verb's command line
 * @verb: which
 * @argc: of the verb
 * @argv: of the verb, its name first
 *
 * --help, unknown options and empty arguments end the program here.
 *
 * Return: the option's letter, or -1 after the last one.
 */
int next_option(const struct verb *verb, int argc, char **argv)
{
	int option;

	opterr = 0;
	option = getopt_long(argc, argv, ":", verb->options, NULL);
	switch (option) {
	case -1:
		refuse_empty(verb, argc, argv);
		break;
	case 'h':
		verb_help(verb);
		exit(output_written() ? DONE : FAILED);
	case ':':
		exit(usage_problem(verb, "%s needs a value", argv[optind - 1]));
	case '?':
		if (was_long(argv[optind - 1]))
			exit(usage_problem(verb, "unknown option '%s', or it takes no value",
					   argv[optind - 1]));
		exit(usage_problem(verb, "unknown option '-%c'",
				   isascii(optopt) && isprint(optopt) ? optopt : '?'));
	}
	return option;
}

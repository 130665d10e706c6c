// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of a target. The keys are checked here, so that the message for a wrong key can list the right
 * ones. The target checks the values.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"

#define LIST_TEXT	200

static bool fits(const struct verb *verb, const struct target_option *option)
{
	return verb->keys == KEYS_ALL || option->later;
}

static void list(const struct verb *verb, char text[LIST_TEXT])
{
	*text = '\0';
	for (const struct target_option *option = verb->kind->options; option->key; option++)
		if (fits(verb, option))
			snprintf(text + strlen(text), LIST_TEXT - strlen(text), "%s%s", *text ? ", " : "",
				 option->key);
}

/**
 * option_take - check an option that the user typed
 * @verb: the verb, which has a kind and keys
 * @pair: "key=value"; neither may contain a blank
 *
 * Return: the option; NULL, after a message, if the verb can't set it.
 */
const struct target_option *option_take(const struct verb *verb, const char *pair)
{
	const char *equals = strchr(pair, '='), *before = verb->keys == KEYS_ALL ? "--option " : "";
	const struct target_option *option;
	char text[LIST_TEXT];

	if (!equals || equals == pair || !equals[1] || strpbrk(pair, " \t\n")) {
		usage_problem(verb, "%s%s: expected KEY=VALUE", before, pair);
		return NULL;
	}
	for (option = verb->kind->options; option->key; option++)
		if (strlen(option->key) == (size_t)(equals - pair) &&
		    !strncmp(option->key, pair, equals - pair))
			break;
	if (option->key && fits(verb, option))
		return option;
	list(verb, text);
	usage_problem(verb, "%s%s: %s; the options are %s", before, pair,
		      option->key ? "only create can set this option" : "unknown option", text);
	return NULL;
}

/**
 * pairs_add - add an option to those of a table line
 * @pairs: zero at first
 * @key: its name
 * @value: without a blank
 *
 * Return: false if there is no room for it.
 */
bool pairs_add(struct pairs *pairs, const char *key, const char *value)
{
	size_t at = strlen(pairs->text);
	int len = snprintf(pairs->text + at, sizeof(pairs->text) - at, " %s %s", key, value);

	pairs->words += 2;
	return len < (int)(sizeof(pairs->text) - at);
}

/**
 * pairs_take - add an option that the user typed behind --option
 * @verb: the verb
 * @pairs: zero at first
 * @pair: "key=value"
 *
 * Return: false, after a message, if the option is wrong.
 */
bool pairs_take(const struct verb *verb, struct pairs *pairs, const char *pair)
{
	const struct target_option *option = option_take(verb, pair);

	if (!option)
		return false;
	if (pairs_add(pairs, option->key, strchr(pair, '=') + 1))
		return true;
	usage_problem(verb, "too many options");
	return false;
}

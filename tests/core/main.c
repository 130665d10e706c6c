// SPDX-License-Identifier: GPL-2.0-only
/*
 * core-test [GROUP]...: runs the groups of tests named, or all, and ends with
 * "N passed, N failed". Exit status 0: none failed.
 */
#include <stdio.h>
#include <string.h>

#include "test.h"

static unsigned long passed, failed;

bool test_result(bool good, const char *file, int line, const char *what)
{
	if (good)
		passed++;
	else if (++failed <= 20)	/* the first say enough */
		printf("%s:%d: FAILED: %s\n", file, line, what);
	return good;
}

static const struct {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "basic", basic_tests },
	{ "crash", crash_tests },
	{ "sabotage", sabotage_tests },
	{ "random", random_tests },
	{ "corruption", corruption_tests },
	{ "damage", damage_tests },
	{ "region", region_tests },
	{ "log-basic", log_basic_tests },
	{ "log-crash", log_crash_tests },
	{ "log-sabotage", log_sabotage_tests },
	{ "log-random", log_random_tests },
	{ "log-damage", log_damage_tests },
	{ "log-heal", log_heal_tests },
	{ "log-fuzz", log_fuzz_tests },
	{ "names-basic", names_basic_tests },
	{ "names-crash", names_crash_tests },
	{ "names-sabotage", names_sabotage_tests },
	{ "names-random", names_random_tests },
	{ "names-damage", names_damage_tests },
	{ "names-fuzz", names_fuzz_tests },
	{ "names-judge", names_judge_tests },
	{ "names-replay", names_replay_tests },
};

static bool chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (chosen(groups[i].name, argc, argv))
			groups[i].run();
	printf("%lu passed, %lu failed\n", passed, failed);
	return failed || !passed;
}

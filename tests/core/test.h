/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting what passed, and the groups of tests that main() runs.
 */
#ifndef FOREBAY_TESTS_CORE_TEST_H
#define FOREBAY_TESTS_CORE_TEST_H

#include <stdbool.h>

/* One test: counts it, and says so if it failed. */
#define EXPECT(condition) test_result(condition, __FILE__, __LINE__, #condition)

bool test_result(bool passed, const char *file, int line, const char *what);

void basic_tests(void);
void crash_tests(void);
void sabotage_tests(void);
void random_tests(void);
void corruption_tests(void);
void damage_tests(void);
void region_tests(void);
void log_basic_tests(void);
void log_crash_tests(void);
void log_sabotage_tests(void);
void log_random_tests(void);
void log_damage_tests(void);
void log_heal_tests(void);
void log_fuzz_tests(void);
void names_basic_tests(void);
void names_crash_tests(void);
void names_sabotage_tests(void);
void names_random_tests(void);
void names_damage_tests(void);
void names_fuzz_tests(void);
void names_replay_tests(void);
void names_judge_tests(void);

#endif

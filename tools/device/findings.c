// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the checks of caches and of write logs report their findings.
 */
#include <stdio.h>

#include "base/message.h"
#include "base/shell.h"
#include "findings.h"

/* Findings printed one by one. Of further ones, only the number is printed. */
#define MAX_LINES	50

/**
 * findings_count - count a finding
 * @findings: of the check
 * @kind: its number in @findings->kinds
 *
 * Return: true if it is to be listed or printed.
 */
bool findings_count(struct findings *findings, unsigned int kind)
{
	findings->of_kind[kind]++;
	findings->nr++;
	return findings->list || findings->all || findings->nr <= MAX_LINES;
}

/**
 * findings_print_rest - print how many findings were not printed
 * @findings: of the check
 */
void findings_print_rest(const struct findings *findings)
{
	if (!findings->all && findings->nr > MAX_LINES)
		printf("  and %llu more; --json lists them all\n",
		       (unsigned long long)findings->nr - MAX_LINES);
}

/**
 * findings_conclude - print the result of a check, and the meaning of its findings
 * @findings: of the check
 * @found: number of inconsistencies
 */
void findings_conclude(const struct findings *findings, u64 found)
{
	if (!found) {
		print_of(findings->path, "%sclean%s\n", style(stdout, GREEN), plain(stdout));
		return;
	}
	print_of(findings->path, "%s%llu inconsistenc%s%s%s\n", style(stdout, RED),
		 (unsigned long long)found, found == 1 ? "y" : "ies", plain(stdout),
		 findings->repairs ? "" : "; nothing was changed");
	for (size_t i = 0; i < FINDING_KINDS; i++)
		if (findings->of_kind[i] && findings->kinds[i].meaning)
			printf("  %s\n", findings->kinds[i].meaning);
	puts("  A power cut leaves nothing of this kind: suspect the device, or something that wrote to it.");
}

/**
 * print_superblock_finding - print the JSON report for a device that can't be opened
 * @path: device
 * @key: of the place of a finding
 * @text: what is wrong
 */
void print_superblock_finding(const char *path, const char *key, const char *text)
{
	json_object *report = json_object_new_object(), *list = json_object_new_array();
	json_object *one = json_object_new_object();

	json_add_text(one, key, "superblock");
	json_add_text(one, "problem", text);
	json_object_array_add(list, one);
	json_add_text(report, "device", path);
	json_add_flag(report, "clean", false);
	json_object_object_add(report, "findings", list);
	print_json(report);
}

/**
 * advise_unopened - say what can be done about a cache or log whose superblocks are no use
 * @dev: the device
 * @fits: false: the superblock describes another layout than the device has room for
 * @format: the verb that would make a new cache or log
 */
void advise_unopened(const struct device *dev, bool fits, const char *format)
{
	char size[SIZE_TEXT];

	if (!fits)
		advice("It has %s: an image may be cut short, a namespace may be smaller than it was.",
		       size_text(size, dev->size));
	advice("Copy the device first (dd). `forebay %s --force %s` makes a new one; what this one holds is lost.",
	       format, in_shell(dev->path));
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay check: reads the name log of a cache with core's check, and words the findings.
 */
#include <stdio.h>
#include <string.h>

#include "../core/names/names.h"
#include "check_names.h"

struct names_check {
	const struct nl *nl;
	names_finding_fn report;
	void *arg;
};

/* The number behind these words is a place, and for a header that of the copy. */
static const char *what_of(enum nl_damage_kind kind)
{
	switch (kind) {
	case NL_BAD_HEADER:
		return NAMES_HEADER;
	case NL_BAD_TRIM_WORD:
		return NAMES_KIND ": trim word";
	case NL_BAD_COMMIT_WORD:
	case NL_BAD_COMMIT:
		return NAMES_KIND ": commit word";
	case NL_BAD_DECIDED_WORD:
		return NAMES_KIND ": decided word at trim word";
	case NL_BAD_DECISIONS:
		return NAMES_KIND ": decisions at trim word";
	case NL_BAD_RECORD:
	case NL_BAD_TAIL:
		break;
	}
	return NAMES_KIND ": record";
}

/* The contents of a record's head, whether or not they are credible. */
static void describe(const struct nl *nl, u64 place, char *text, size_t size)
{
	struct nl_record_onmedia rec;

	if (!pm_read(&rec, nl->ring + place % nl->nr_lines * NL_LINE, sizeof(rec)))
		snprintf(text, size, "cannot be read: a bad block");
	else
		snprintf(text, size, "says: place %llu, kind %u, %u lines, %u bytes",
			 (unsigned long long)le64_to_cpu(rec.place), rec.kind, le16_to_cpu(rec.lines),
			 le16_to_cpu(rec.length));
}

static void finding(void *arg, const struct nl_damage *damage)
{
	const struct names_check *check = arg;
	char detail[128] = "";

	if (damage->kind == NL_BAD_RECORD || damage->kind == NL_BAD_TAIL)
		describe(check->nl, damage->place, detail, sizeof(detail));
	check->report(check->arg, what_of(damage->kind), damage->place, damage->why, detail);
}

/**
 * check_names - read the name log of a cache, and report each inconsistency
 * @ps: the cache
 * @report: called for each
 * @arg: passed to @report
 *
 * Return: their number; 0 also if the cache has no name log.
 */
u64 check_names(const struct ps *ps, names_finding_fn report, void *arg)
{
	static struct nl_record scratch;
	struct nl nl;
	struct names_check check = { .nl = &nl, .report = report, .arg = arg };
	enum nl_error err;
	char why[128];

	if (!ps->names)
		return 0;
	err = nl_open(&nl, ps->names, ps->names_size, NL_OPEN_READ_ONLY);
	if (!err)
		return nl_check(&nl, &scratch, finding, &check);
	snprintf(why, sizeof(why), "can't be opened: %s", nl_strerror(err));
	report(arg, NAMES_KIND ": region at byte", (u64)((u8 *)ps->names - ps->base), why, "");
	return 1;
}

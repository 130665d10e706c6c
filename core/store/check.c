// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a whole store and reports inconsistencies. Writes nothing.
 *
 * A power cut never leaves anything that is reported here. Free records with leftovers, page records of
 * an earlier life of their file, and an older but valid superblock copy are all normal.
 *
 * file.c and page.c verify single records; this file compares them with each other. For that, record
 * numbers are sorted in the caller's array by heapsort: no recursion, no memory, and no bad case that a
 * damaged store could provoke.
 */
#include "store.h"

struct check {
	const struct ps *ps;
	ps_report_fn report;
	void *arg;
	u64 found;
};

/* Compares two records by what must be unique: below, at or above 0. */
typedef int (*compare_fn)(const struct ps *ps, u32 a, u32 b);

static void complain(struct check *check, const char *what, u64 number, const char *why)
{
	check->found++;
	check->report(check->arg, what, number, why);
}

static void sift_down(const struct ps *ps, u32 *heap, u32 root, u32 n, compare_fn compare)
{
	u32 moving = heap[root];
	u64 child;

	for (; (child = 2 * (u64)root + 1) < n; root = child) {
		if (child + 1 < n && compare(ps, heap[child], heap[child + 1]) < 0)
			child++;
		if (compare(ps, moving, heap[child]) >= 0)
			break;
		heap[root] = heap[child];
	}
	heap[root] = moving;
}

static void sort(const struct ps *ps, u32 *records, u32 n, compare_fn compare)
{
	u32 i;

	for (i = n / 2; i-- > 0;)
		sift_down(ps, records, i, n, compare);
	for (i = n; i-- > 1;) {
		u32 last = records[0];

		records[0] = records[i];
		records[i] = last;
		sift_down(ps, records, 0, i, compare);
	}
}

static void complain_of_twins(struct check *check, u32 *records, u32 n, compare_fn compare,
			      const char *what, const char *why)
{
	u32 i;

	sort(check->ps, records, n, compare);
	for (i = 0; i < n; i++)
		if ((i && !compare(check->ps, records[i - 1], records[i])) ||
		    (i + 1 < n && !compare(check->ps, records[i], records[i + 1])))
			complain(check, what, records[i], why);
}

/* Both records of a comparison have been read by pm_read() in this check, so they are loaded plainly. */
static int compare_handles(const struct ps *ps, u32 a, u32 b)
{
	const struct ps_file_onmedia *fa = &ps->files[a], *fb = &ps->files[b];

	if (fa->type != fb->type)
		return fa->type < fb->type ? -1 : 1;
	if (fa->len != fb->len)
		return fa->len < fb->len ? -1 : 1;
	return memcmp(fa->handle, fb->handle, fa->len);
}

static int compare_places(const struct ps *ps, u32 a, u32 b)
{
	u64 pa = le64_to_cpu(ps->pages[a].commit) & ~PS_PAGE_STATE_MASK;
	u64 pb = le64_to_cpu(ps->pages[b].commit) & ~PS_PAGE_STATE_MASK;

	return pa < pb ? -1 : pa > pb;
}

static void check_supers(struct check *check)
{
	const struct ps *ps = check->ps;
	const struct ps_super_onmedia *best = &ps->super;
	u32 copy;

	for (copy = 0; copy < PS_NR_SUPERS; copy++) {
		struct ps_super_onmedia s;

		if (!ps_super_read(ps->base, copy, &s))
			complain(check, "superblock", copy, "is damaged; the other copy is used");
		else if (s.seq == best->seq && memcmp(&s, best, sizeof(s)))
			complain(check, "superblock", copy,
				 "differs from the other copy, though both are whole");
	}
}

static void check_files(struct check *check, u32 *scratch)
{
	const struct ps *ps = check->ps;
	u32 file, n = 0;

	for (file = 0; file < ps->nr_files; file++) {
		struct ps_file_info info;

		if (ps_file_read(ps, file, &info))
			complain(check, "file record", file,
				 "is damaged; the pages of this file cannot be attributed");
		else if (info.state == PS_FILE_LIVE)
			scratch[n++] = file;
	}
	complain_of_twins(check, scratch, n, compare_handles, "file record",
			  "names the same lower file as another record");
}

static void check_pages(struct check *check, u32 *scratch)
{
	const struct ps *ps = check->ps;
	u32 page, n = 0;

	for (page = 0; page < ps->nr_pages; page++) {
		struct ps_page_info info;
		int err = ps_page_read(ps, page, &info);

		if (err == -EUCLEAN)
			complain(check, "page record", page,
				 "is damaged, or belongs to a damaged file record");
		else if (!err && info.state != PS_PAGE_FREE)
			scratch[n++] = page;
	}
	complain_of_twins(check, scratch, n, compare_places, "page record",
			  "stands for the same page of the same file as another record");
}

/**
 * ps_check - verify every record of a store, and that they agree
 * @ps: store; it doesn't change meanwhile
 * @scratch: array of @ps->nr_pages numbers
 * @report: called for every inconsistency: kind of record, its number,
 *	and the problem, as the rest of a sentence
 * @arg: passed to @report
 *
 * Context: Any; takes n log n comparisons for n valid pages.
 * Return: number of inconsistencies.
 */
u64 ps_check(const struct ps *ps, u32 *scratch, ps_report_fn report, void *arg)
{
	struct check check = { .ps = ps, .report = report, .arg = arg };

	check_supers(&check);
	check_files(&check, scratch);
	check_pages(&check, scratch);
	return check.found;
}

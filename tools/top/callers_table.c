// SPDX-License-Identifier: GPL-2.0-only
/* Makes lines of the processes and files of sync calls. */
#include <stdio.h>

#include "base/message.h"
#include "callers.h"
#include "callers_table.h"
#include "cell.h"
#include "file_name.h"
#include "table.h"

#define LINES_MAX	100	/* lines: each looks through a process's open files */

static void add_caller(struct lines *lines, const struct caller *caller, double seconds)
{
	struct line *line = lines_add(lines, LINE_OBJECT);
	char name[LINE_TEXT], program[sizeof(caller->program)], p50[CELL_TEXT], p99[CELL_TEXT], text[80];

	file_name(caller, name, sizeof(name));
	snprintf(program, sizeof(program), "%s", caller->program);
	percentile_text(p50, caller->bins, caller->calls, 50);
	percentile_text(p99, caller->bins, caller->calls, 99);
	snprintf(line->text, LINE_TEXT, "%-8d", caller->pid);
	line_append(line, -16, make_harmless(program));
	snprintf(text, sizeof(text), "%8.0f %8.0f %9.16s %9.16s ", caller->calls / seconds,
		 caller->below / seconds, p50, p99);
	line_append(line, 0, text);
	line_append(line, 0, make_harmless(name));
}

/**
 * lines_of_callers - the lines for all sync calls of a look
 * @lines: filled in; lines_free() frees them
 * @look: from callers_look()
 */
void lines_of_callers(struct lines *lines, const struct look *look)
{
	*lines = (struct lines){ };
	if (look->lost)
		snprintf(lines_add(lines, LINE_NOTE)->text, LINE_TEXT,
			 "There were more calls than the kernel could note: the numbers are too low.");
	if (!look->n) {
		snprintf(lines_add(lines, LINE_NOTE)->text, LINE_TEXT,
			 "No sync calls on Forebay since the last look.");
		return;
	}
	snprintf(lines_add(lines, LINE_TITLE)->text, LINE_TEXT, "%-8s%-16s %8s %8s %9s %9s  %s", "PID", "PROGRAM",
		 "SYNC/S", "BELOW/S", "50 %", "99 %", "FILE");
	for (size_t i = 0; i < look->n && i < LINES_MAX; i++)
		add_caller(lines, look->caller[i], look->seconds);
	if (look->n > LINES_MAX)
		snprintf(lines_add(lines, LINE_NOTE)->text, LINE_TEXT, "and %zu others with fewer calls",
			 look->n - LINES_MAX);
}

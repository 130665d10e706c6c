// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports on standard error that a computation continues, and for how many seconds. It is for computations
 * that don't tell how far they are. The first two seconds pass without a report.
 *
 * The lock of standard output keeps a report and other output apart.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "message.h"
#include "progress.h"

#define STEP_SECONDS	2

/**
 * progress_line - report how far something is, on a terminal in place of the report before
 * @name: of what is worked on, as for print_name()
 * @format: the rest of the line, as for printf()
 *
 * A terminal that is too narrow shows the beginning of the line: wrapped, it could not be replaced.
 */
void progress_line(const char *name, const char *format, ...)
{
	va_list args;
	char *line;

	va_start(args, format);
	line = text_about(name, format, args);
	va_end(args);
	if (line)
		fprintf(stderr, is_screen(stderr) ? "\r\033[K\033[?7l%s\033[?7h" : "%s\n", line);
	free(line);
}

static void *tell(void *arg)
{
	struct progress *progress = arg;
	struct timespec next = progress->start;

	for (int seconds = STEP_SECONDS;; seconds += STEP_SECONDS) {
		next.tv_sec += STEP_SECONDS;
		if (!sem_clockwait(&progress->end, CLOCK_MONOTONIC, &next))
			break;
		flockfile(stdout);
		progress_line(progress->path, "%s, %d s so far", progress->doing, seconds);
		funlockfile(stdout);
	}
	return NULL;
}

/**
 * progress_begin - from now on, report every two seconds that a computation continues
 * @progress: must stay valid until progress_end()
 * @path: the device, image or file
 * @doing: what is done to it
 *
 * Without a thread to report, nothing is reported.
 */
void progress_begin(struct progress *progress, const char *path, const char *doing)
{
	*progress = (struct progress){ .path = path, .doing = doing };
	clock_gettime(CLOCK_MONOTONIC, &progress->start);
	sem_init(&progress->end, 0, 0);
	progress->running = !pthread_create(&progress->thread, NULL, tell, progress);
}

static void hide(void)
{
	if (is_screen(stderr))
		fputs("\r\033[K", stderr);
}

/**
 * progress_pause - clear the terminal line for other output, and report nothing until progress_go_on()
 */
void progress_pause(void)
{
	flockfile(stdout);
	hide();
}

/**
 * progress_go_on - report again, after progress_pause()
 */
void progress_go_on(void)
{
	funlockfile(stdout);
}

/**
 * progress_end - end the reports
 * @progress: from progress_begin()
 *
 * errno stays as it is.
 */
void progress_end(struct progress *progress)
{
	int err = errno;

	if (progress->running) {
		sem_post(&progress->end);
		pthread_join(progress->thread, NULL);
	}
	sem_destroy(&progress->end);
	hide();
	errno = err;
}

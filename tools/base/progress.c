// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports on standard error that a computation continues, and for how many seconds. It is for computations
 * that don't tell how far they are. The first two seconds pass without a report.
 *
 * The lock of standard output keeps a report and other output apart.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "message.h"
#include "progress.h"

#define STEP_SECONDS	2

static void *tell(void *arg)
{
	struct progress *progress = arg;
	bool terminal = is_screen(stderr);
	struct timespec next = progress->start;
	char *path = strdup(progress->path);

	if (path)
		make_harmless(path);
	for (int seconds = STEP_SECONDS;; seconds += STEP_SECONDS) {
		next.tv_sec += STEP_SECONDS;
		if (!sem_clockwait(&progress->end, CLOCK_MONOTONIC, &next))
			break;
		flockfile(stdout);
		fprintf(stderr, terminal ? "\r\033[K%s: %s, %d s so far" : "%s: %s, %d s so far\n",
			path ?: "?", progress->doing, seconds);
		funlockfile(stdout);
	}
	free(path);
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

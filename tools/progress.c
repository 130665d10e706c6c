// SPDX-License-Identifier: GPL-2.0-only
/*
 * Says on standard error that something still goes on, and for how long; for what tells nobody how far it
 * is. Nothing is said in the first two seconds.
 *
 * Standard output's lock keeps this and what is printed meanwhile apart.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define STEP_SECONDS	2

static void *tell(void *arg)
{
	struct progress *progress = arg;
	bool terminal = isatty(STDERR_FILENO);
	struct timespec next = progress->began;

	for (int seconds = STEP_SECONDS;; seconds += STEP_SECONDS) {
		next.tv_sec += STEP_SECONDS;
		if (!sem_clockwait(&progress->end, CLOCK_MONOTONIC, &next))
			return NULL;
		flockfile(stdout);
		fprintf(stderr, terminal ? "\r\033[K%s: %s, %d s so far" : "%s: %s, %d s so far\n",
			progress->path, progress->doing, seconds);
		funlockfile(stdout);
	}
}

/**
 * progress_begin - from now on say from time to time that something goes on
 * @progress: the caller's until progress_end()
 * @path: what it is done to
 * @doing: and what is done
 *
 * Without memory for it nothing is said.
 */
void progress_begin(struct progress *progress, const char *path, const char *doing)
{
	*progress = (struct progress){ .path = path, .doing = doing };
	clock_gettime(CLOCK_MONOTONIC, &progress->began);
	sem_init(&progress->end, 0, 0);
	progress->running = !pthread_create(&progress->thread, NULL, tell, progress);
}

static void hide(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/**
 * progress_pause - make room on a terminal for something else, and say nothing until progress_go_on()
 */
void progress_pause(void)
{
	flockfile(stdout);
	hide();
}

/**
 * progress_go_on - something else was printed
 */
void progress_go_on(void)
{
	funlockfile(stdout);
}

/**
 * progress_end - it is done
 * @progress: from progress_begin()
 */
void progress_end(struct progress *progress)
{
	if (progress->running) {
		sem_post(&progress->end);
		pthread_join(progress->thread, NULL);
	}
	sem_destroy(&progress->end);
	hide();
}

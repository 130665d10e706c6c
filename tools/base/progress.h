/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Progress of a long computation in this process.
 */
#ifndef FOREBAY_TOOLS_PROGRESS_H
#define FOREBAY_TOOLS_PROGRESS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#include "compiler.h"

struct progress {
	const char *path, *doing;
	struct timespec start;
	bool running;
	pthread_t thread;
	sem_t end;
};

void progress_line(const char *name, const char *format, ...) __printf(2, 3);
void progress_begin(struct progress *progress, const char *path, const char *doing);
void progress_pause(void);
void progress_go_on(void);
void progress_end(struct progress *progress);

#endif

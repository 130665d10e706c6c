// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has a target write down all that it holds, and shows how far it is.
 *
 * The target's message returns when all is done, so a process of its own sends it
 * while this one reads the status: libdevmapper is not made for threads.
 *
 * What a target holds it says in pieces that become free as a whole, which may be large. What it passes
 * on it counts as it goes: so what it held at first, less that, is what is left at most.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flush.h"

/* Between two looks, and between two lines in a log. */
#define TERMINAL_STEP_MS	100
#define LOG_STEP_MS		2000

/* False: it can't be told. */
static bool left(const struct flush *flush, char text[SIZE_TEXT])
{
	const struct amounts *before = &flush->before;
	struct amounts now;
	uint64_t passed, most;

	if (!flush->look(flush->name, &now))
		return false;
	passed = now.passed_on - before->passed_on;
	most = passed < before->held ? before->held - passed : 0;
	flush->text(text, now.held < most ? now.held : most);
	return true;
}

static void show_progress(const struct flush *flush, bool terminal)
{
	char text[SIZE_TEXT];

	if (left(flush, text))
		fprintf(stderr, terminal ? "\r\033[K%s: at most %s left" : "%s: at most %s left\n",
			flush->name, text);
}

/* Did the process end within that time? Its status, if so. */
static bool ended_within(pid_t child, int milliseconds, int *status)
{
	const struct timespec step = { .tv_nsec = 10 * 1000000L };

	for (int waited = 0; waited < milliseconds; waited += 10) {
		pid_t ended = waitpid(child, status, WNOHANG);

		if (ended < 0)
			*status = W_EXITCODE(errno, 0);
		if (ended)
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

static pid_t sender;

static void stop_sender(int number)
{
	kill(sender, number);
}

/* Who interrupts this process means the other one; this one tells what has become of the target. */
static void pass_on(int number, struct sigaction *before)
{
	const struct sigaction passing = { .sa_handler = stop_sender };

	sigaction(number, NULL, before);
	if (before->sa_handler != SIG_IGN)
		sigaction(number, &passing, NULL);
}

/* Returns 0 or an errno of the kernel's. */
static int send(const struct flush *flush)
{
	bool terminal = isatty(STDERR_FILENO);
	struct sigaction interrupt, terminate;
	int status;

	fflush(NULL);
	signal(SIGCHLD, SIG_DFL);	/* inherited as ignored, there would be nothing to wait for */
	sender = fork();
	if (sender < 0)
		return errno;
	if (!sender)
		_exit(mapped_message(flush->name, flush->message, NULL));
	pass_on(SIGINT, &interrupt);
	pass_on(SIGTERM, &terminate);
	while (!ended_within(sender, terminal ? TERMINAL_STEP_MS : LOG_STEP_MS, &status))
		if (!flush->quiet)
			show_progress(flush, terminal);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &terminate, NULL);
	if (terminal && !flush->quiet)
		fputs("\r\033[K", stderr);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* Anything else is what came of it. */
static bool was_tried(int err)
{
	return err != EBUSY && err != ENXIO && err != EPERM && err != ENOMEM && err != EAGAIN &&
	       err != EINVAL;
}

/**
 * flush_run - have a target write everything down
 * @flush: what and how
 *
 * Return: DONE; LEFT, after a message: the target holds something still; FAILED,
 * after a message: it could not be tried.
 */
enum exit_status flush_run(struct flush *flush)
{
	char text[SIZE_TEXT];
	int err;

	if (!flush->look(flush->name, &flush->before))
		flush->before = (struct amounts){ };
	err = send(flush);
	if (!err)
		return DONE;
	problem("%s: %s: %s", flush->name, was_tried(err) ? "not everything could be written back" :
		"writing back could not be tried", strerror(err));
	if (was_tried(err) && left(flush, text))
		advice("At most %s left in the %s", text, flush->rest);
	if (err == EBUSY)
		advice("Is it suspended? `dmsetup resume %s` ends that.", flush->name);
	return was_tried(err) ? LEFT : FAILED;
}

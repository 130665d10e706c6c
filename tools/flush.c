// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has a target write down all that it holds, and shows how far it is.
 *
 * The target's message returns when all is done, so a process of its own sends it
 * while this one reads the status: libdevmapper is not made for threads.
 *
 * What a target holds it says in pieces that become free as a whole, which may be large. One that counts
 * what it passes on, and passes on only what it held at first, lets more be said: what is left is at most
 * the difference. It counts what is on its way; so once something was refused, only the pieces tell.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flush.h"

/* Between two looks, and between two lines in a log. */
#define TERMINAL_STEP_MS	100
#define LOG_STEP_MS		2000

static uint64_t at_most(const struct flush *flush, const struct amounts *now)
{
	const struct amounts *before = &flush->before;
	uint64_t passed = now->passed_on - before->passed_on;
	uint64_t most = passed < before->held ? before->held - passed : 0;

	if (!flush->counts || now->refused != before->refused)
		return now->held;
	return now->held < most ? now->held : most;
}

static void show_progress(const struct flush *flush, bool terminal)
{
	struct amounts now = { };
	char text[SIZE_TEXT];

	if (flush->look(flush->name, &now))
		fprintf(stderr, terminal ? "\r\033[K%s: at most %s left" : "%s: at most %s left\n",
			flush->name, flush->text(text, at_most(flush, &now)));
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

/* In the other process, which goes when this one is killed. */
static void send_message(const struct flush *flush, pid_t parent, const sigset_t *mask)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	_exit(getppid() == parent ? mapped_message(flush->name, flush->message, NULL) : EINTR);
}

/* Returns 0 or an errno. Until signals are passed on they wait: one would end this process alone. */
static int begin_sending(const struct flush *flush, struct sigaction *interrupt, struct sigaction *terminate)
{
	sigset_t both, mask;
	pid_t parent = getpid();
	int err = 0;

	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, &mask);
	sender = fork();
	if (!sender)
		send_message(flush, parent, &mask);
	if (sender < 0) {
		err = errno;
	} else {
		pass_on(SIGINT, interrupt);
		pass_on(SIGTERM, terminate);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return err;
}

/* Returns 0 or an errno, the kernel's answer. */
static int send(const struct flush *flush)
{
	bool terminal = isatty(STDERR_FILENO);
	struct sigaction interrupt, terminate;
	int status, err;

	fflush(NULL);
	signal(SIGCHLD, SIG_DFL);	/* inherited as ignored, there would be nothing to wait for */
	err = begin_sending(flush, &interrupt, &terminate);
	if (err)
		return err;
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
	struct amounts now = { };
	char text[SIZE_TEXT];
	int err;

	flush->before = (struct amounts){ };
	if (!flush->look(flush->name, &flush->before))
		flush->counts = false;
	err = send(flush);
	if (!err)
		return DONE;
	problem("%s: %s: %s", flush->name, was_tried(err) ? "not everything could be written back" :
		"writing back could not be tried", strerror(err));
	if (was_tried(err) && flush->look(flush->name, &now))
		advice("At most %s left in the %s", flush->text(text, now.held), flush->rest);
	if (err == EBUSY)
		advice("Is it suspended? `dmsetup resume %s` ends that.", flush->name);
	return was_tried(err) ? LEFT : FAILED;
}

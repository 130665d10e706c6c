// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has a target write down all that it holds, and shows how far it is.
 *
 * The target's message returns when all is done. So a child process sends it while this process reads the
 * status: libdevmapper is not made for threads.
 *
 * A target says how much it holds in pieces that become free as a whole, which may be large. A write log
 * also counts what it writes back, and "flush" writes back what it held at first before anything newer. So
 * at most the difference is left. The count includes what is on its way: once a write was refused, only
 * the pieces are reliable.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/progress.h"
#include "base/shell.h"
#include "target.h"
#include "write_down.h"

/* Between two updates on a terminal, and between two lines in a log. */
#define TERMINAL_STEP_MS	100
#define LOG_STEP_MS		2000

/* Of a write log in bytes, of a transit cache in blocks. */
struct amounts {
	uint64_t held;			/* now, at most */
	uint64_t passed_on;		/* since the target was created; includes writes on their way */
	uint64_t refused;		/* writes that failed */
};

struct flush {
	const char *name;		/* of the mapped device */
	const struct mapped_kind *kind;
	const char *message;		/* which has the target write down */
	bool quiet;			/* no progress */
	bool counts;			/* the target first writes down what it held, and counts that */
	struct amounts before;
};

static bool look(const struct flush *flush, struct amounts *now)
{
	struct target target;

	if (!target_read(flush->name, flush->kind, &target))
		return false;
	*now = (struct amounts){
		.held = flush->kind->amounts > 1 ? target.bytes.used : target.pieces.used,
		.passed_on = (mapped_value(target.values, "writeback_sectors") +
			      mapped_value(target.values, "superseded_sectors")) << 9,
		.refused = mapped_value(target.values, "origin_errors") +
			   mapped_value(target.values, "medium_errors"),
	};
	return true;
}

static const char *amount_text(const struct flush *flush, char text[SIZE_TEXT], uint64_t amount)
{
	if (flush->kind->amounts > 1)
		return size_text(text, amount);
	snprintf(text, SIZE_TEXT, "%lu block%s", amount, PLURAL(amount));
	return text;
}

static uint64_t at_most(const struct flush *flush, const struct amounts *now)
{
	const struct amounts *before = &flush->before;
	uint64_t passed = now->passed_on - before->passed_on;
	uint64_t left = passed < before->held ? before->held - passed : 0;

	if (!flush->counts || now->refused != before->refused)
		return now->held;
	return now->held < left ? now->held : left;
}

static void show_progress(const struct flush *flush)
{
	struct amounts now = { };
	char text[SIZE_TEXT];

	if (look(flush, &now))
		progress_line(flush->name, "at most %s left", amount_text(flush, text, at_most(flush, &now)));
}

/* Waits for the child at most that long; returns whether it has ended, and its status. */
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

/* A signal that would end this process is passed on to the child: this process then reports the result. */
static void pass_on(int number, struct sigaction *before)
{
	const struct sigaction passing = { .sa_handler = stop_sender };

	sigaction(number, NULL, before);
	if (before->sa_handler != SIG_IGN)
		sigaction(number, &passing, NULL);
}

/* Runs in the child, which the kernel kills when its parent dies. */
static void send_message(const struct flush *flush, pid_t parent, const sigset_t *mask)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	_exit(getppid() == parent ? mapped_message(flush->name, flush->message, NULL) : EINTR);
}

/*
 * Returns 0 or an errno. Signals are blocked until they are passed on: one would end this process alone.
 */
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

/* Returns 0, or an errno: the kernel's answer to the message. */
static int send(const struct flush *flush)
{
	bool terminal = is_screen(stderr);
	struct sigaction interrupt, terminate;
	int status, err;

	fflush(NULL);
	signal(SIGCHLD, SIG_DFL);	/* if it were inherited as ignored, waitpid() would find no child */
	err = begin_sending(flush, &interrupt, &terminate);
	if (err)
		return err;
	while (!ended_within(sender, terminal ? TERMINAL_STEP_MS : LOG_STEP_MS, &status))
		if (!flush->quiet)
			show_progress(flush);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &terminate, NULL);
	if (terminal && !flush->quiet)
		fputs("\r\033[K", stderr);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* These errors come before any write; any other error is the result of the attempt. */
static bool was_tried(int err)
{
	return err != EBUSY && err != ENXIO && err != EPERM && err != ENOMEM && err != EAGAIN &&
	       err != EINVAL;
}

/**
 * advise_on_mode - advise what becomes of further writes to a write log
 * @name: of the mapped device
 */
void advise_on_mode(const char *name)
{
	struct target target;

	if (!target_read(name, &writelog_kind, &target))
		return;
	if (!strcmp(target.mode, "cleaner"))
		advice("It no longer logs writes: they go to the origin, until `forebay writelog resume %s`.",
		       in_shell(name));
	else
		advice("It goes on logging writes.");
}

/**
 * write_down - have a target write down all that it holds
 * @name: of the mapped device
 * @kind: of target
 * @message: "flush"; of a write log also "cleaner", after which it logs no writes
 * @quiet: no progress
 *
 * Return: DONE; LEFT, after a message: the target holds something still; FAILED, after a message: it could
 * not be tried.
 */
enum exit_status write_down(const char *name, const struct mapped_kind *kind, const char *message,
			    bool quiet)
{
	bool cleaner = !strcmp(message, "cleaner");
	struct flush flush = { .name = name, .kind = kind, .message = message, .quiet = quiet };
	struct amounts now = { };
	char text[SIZE_TEXT];
	int err;

	/*
	 * A cleaner also passes on newer writes, and a transit cache any block first: neither count is
	 * usable.
	 */
	flush.counts = look(&flush, &flush.before) && kind == &writelog_kind && !cleaner;
	err = send(&flush);
	if (!err)
		return DONE;
	problem("%s: %s: %s", name, was_tried(err) ? "not everything could be written back" :
		"writing back could not be tried", strerror(err));
	if (was_tried(err) && look(&flush, &now))
		advice("At most %s left in the %s", amount_text(&flush, text, now.held), kind->rest);
	if (err == EBUSY)
		advice("Is it suspended? `dmsetup resume %s` ends that.", in_shell(name));
	if (cleaner)
		advise_on_mode(name);
	return was_tried(err) ? LEFT : FAILED;
}

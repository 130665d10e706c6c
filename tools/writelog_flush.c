// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog flush: has the target write everything back, and shows how
 * far it is.
 *
 * The target's message returns when all is done, so a process of its own sends it
 * while this one reads the status: libdevmapper is not made for threads.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "writelog_flush.h"

enum { OPT_CLEANER = 1, OPT_QUIET };

static const struct option options[] = {
	{ "cleaner", no_argument, NULL, OPT_CLEANER },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

/* Between two looks, and between two lines in a log. */
#define TERMINAL_STEP_MS	100
#define LOG_STEP_MS		2000

/**
 * find_target - read a write log that must be in use
 * @name: of the mapped device
 * @target: filled in
 *
 * Return: false, after a message, if there is no such device.
 */
bool find_target(const char *name, struct writelog_target *target)
{
	if (mapped_read(name, WRITELOG_TARGET, &target->mapped))
		return target_parse(target) || mapped_strange(name);
	problem("%s is no device with a write log", name);
	advice("`forebay writelog status` lists them.%s", geteuid() ? " It needs root." : "");
	return false;
}

static void show_progress(const char *name, bool terminal)
{
	struct writelog_target target;
	char size[SIZE_TEXT];

	if (target_read(name, &target))
		fprintf(stderr, terminal ? "\r\033[K%s: %s left" : "%s: %s left\n", name,
			size_text(size, target.bytes_used));
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

/* Who interrupts this process means the other one; this one tells what has become of the log. */
static void pass_on(int number, struct sigaction *before)
{
	const struct sigaction passing = { .sa_handler = stop_sender };

	sigaction(number, NULL, before);
	if (before->sa_handler != SIG_IGN)
		sigaction(number, &passing, NULL);
}

/* Returns 0 or an errno of the kernel's. */
static int send(const char *name, const char *message, bool quiet)
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
		_exit(mapped_message(name, message));
	pass_on(SIGINT, &interrupt);
	pass_on(SIGTERM, &terminate);
	while (!ended_within(sender, terminal ? TERMINAL_STEP_MS : LOG_STEP_MS, &status))
		if (!quiet)
			show_progress(name, terminal);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &terminate, NULL);
	if (terminal && !quiet)
		fputs("\r\033[K", stderr);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/**
 * say_mode - advise people of what becomes of further writes
 * @name: of the mapped device
 */
void say_mode(const char *name)
{
	struct writelog_target target;

	if (!target_read(name, &target))
		return;
	if (!strcmp(target.mode, "cleaner"))
		advice("It logs no writes any more, they go to the origin, until its table is loaded again.");
	else
		advice("It goes on logging writes.");
}

/**
 * write_all_back - have a write log written back
 * @name: of the mapped device
 * @message: "flush" or "cleaner"
 * @quiet: no progress
 *
 * Return: DONE; LEFT, after a message: something stayed in the log; FAILED, after
 * a message: it could not be tried.
 */
enum exit_status write_all_back(const char *name, const char *message, bool quiet)
{
	struct writelog_target target;
	int err = send(name, message, quiet);
	bool tried = err == EIO || err == EINTR;
	char size[SIZE_TEXT];

	if (!err)
		return DONE;
	problem("%s: %s: %s", name, tried ? "not everything could be written back" :
		"writing back could not be tried", strerror(err));
	if (tried && target_read(name, &target))
		advice("%s left in the log; nothing is lost. dmesg says more.",
		       size_text(size, target.bytes_used));
	if (err == EBUSY)
		advice("Is it suspended? `dmsetup resume %s` ends that.", name);
	if (!strcmp(message, "cleaner"))
		say_mode(name);
	return tried ? LEFT : FAILED;
}

static enum exit_status flush(const struct verb *verb, int argc, char **argv)
{
	bool cleaner = false, quiet = false;
	struct writelog_target target;
	enum exit_status status;
	const char *name;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_CLEANER)
			cleaner = true;
		else
			quiet = true;
	}
	if (argc - optind != 1)
		return usage_problem(verb, "want the name of one mapped device");
	name = mapped_name(argv[optind]);
	if (!find_target(name, &target))
		return FAILED;
	status = write_all_back(name, cleaner ? "cleaner" : "flush", quiet);
	if (!status && !quiet)
		printf("%s: everything is on the origin%s\n", name,
		       cleaner ? ", and further writes go there" : "");
	return status;
}

const struct verb verb_writelog_flush = {
	.name = "writelog flush",
	.arguments = "[--cleaner] [--quiet] NAME",
	.summary = "write everything back to the origin",
	.help = "Writes everything in the log of /dev/mapper/NAME back to its origin, and says when\n"
		"that is done. Exit status: 0 all written, 4 something is left in the log, 8 could\n"
		"not be tried, 16 wrong usage.\n"
		"\n"
		"  --cleaner           and log nothing more: further writes go to the origin\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = options,
	.run = flush,
};

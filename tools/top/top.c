// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay top: what caches, write logs and transit caches do, a second at a time, or which processes make
 * sync calls; on the whole terminal, or as text for a file or a pipe.
 *
 * While processes are shown, the kernel traces sync calls for this process. Signals that would end the
 * process are blocked, and end the looks, so that tracing ends and the terminal is as before; then they have
 * their usual effect.
 */
#include <fcntl.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/message.h"
#include "base/verb.h"
#include "callers.h"
#include "callers_table.h"
#include "columns.h"
#include "sys/tracing.h"
#include "table.h"

#define SHIFT	8	/* columns that an arrow key moves */
#define STEP	0.2	/* seconds: so often the kernel's notes of sync calls are fetched */

enum { OPT_INTERVAL = 1, OPT_COUNT, OPT_BATCH, OPT_CALLERS };

static const struct option options[] = {
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "batch", no_argument, NULL, OPT_BATCH },
	{ "callers", no_argument, NULL, OPT_CALLERS },
	OPTION_HELP,
	{ }
};

struct top {
	double interval;	/* seconds */
	unsigned long left;	/* looks */
	bool batch;
	int first;		/* the line at the top */
	int left_out;		/* columns, at the left of the screen */
	bool show_callers;
	struct callers *callers;	/* NULL: not shown, or not possible */
	const char *why;	/* not possible */
	int signals;		/* a descriptor: readable when one has come */
};

static void show_callers(struct top *top, bool wanted)
{
	top->show_callers = wanted;
	top->why = NULL;
	top->first = 0;
	if (wanted) {
		top->callers = callers_begin(&top->why);
	} else if (top->callers) {
		callers_end(top->callers);
		top->callers = NULL;
	}
}

static void print_lines(const struct lines *lines, unsigned long left)
{
	for (size_t i = 0; i < lines->n; i++)
		puts(lines->line[i].text);
	if (left)
		putchar('\n');
	fflush(stdout);
}

/* What fits a row of the screen, without the columns that are left out. */
static void draw_text(int row, const char *text, int left_out)
{
	size_t bytes;

	columns_before(text, left_out, &bytes);
	text += bytes;
	columns_before(text, COLS, &bytes);
	mvaddnstr(row, 0, text, (int)bytes);
}

static void draw(struct top *top, const struct lines *lines)
{
	time_t now = time(NULL);
	char clock[16], head[128];
	int last = (int)lines->n - (LINES > 3 ? LINES - 2 : 1);		/* then the end is on the screen */

	if (top->first > last)
		top->first = last;
	if (top->first < 0)
		top->first = 0;
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&now));
	snprintf(head, sizeof(head), "forebay top %s  every %g s  q: quit, c: %s, +/-: pace, arrows: scroll",
		 clock, top->interval, top->show_callers ? "caches" : "callers");
	erase();
	draw_text(0, head, 0);
	for (int i = top->first; i < (int)lines->n && i - top->first + 2 < LINES; i++) {
		attrset(lines->line[i].kind == LINE_TITLE ? A_REVERSE : A_NORMAL);
		draw_text(i - top->first + 2, lines->line[i].text, top->left_out);
	}
	attrset(A_NORMAL);
	refresh();
}

/* Returns whether top goes on. */
static bool obey(struct top *top, int key)
{
	switch (key) {
	case 'q':
	case 27:
		return false;
	case '+':
		top->interval = top->interval < 30 ? top->interval * 2 : top->interval;
		return true;
	case '-':
		top->interval = top->interval > 0.5 ? top->interval / 2 : top->interval;
		return true;
	case 'c':
		show_callers(top, !top->show_callers);
		return true;
	case KEY_DOWN:
		top->first++;
		return true;
	case KEY_UP:
		top->first--;
		return true;
	case KEY_RIGHT:
		top->left_out += top->left_out < LINE_TEXT - SHIFT ? SHIFT : 0;
		return true;
	case KEY_LEFT:
		top->left_out -= top->left_out ? SHIFT : 0;
	}
	return true;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Until something is to be done, if nothing happens before. */
static int milliseconds(const struct top *top, double rest)
{
	return (top->callers && rest > STEP ? STEP : rest) * 1000 + 1;
}

/* The next look at another screen shall not be long in coming. */
static double time_of_first_look(const struct top *top)
{
	return seconds_now() + (top->callers && top->interval > 1 ? 1 : 0);
}

/*
 * Waits for the next look, and obeys keys meanwhile. False: a key or a signal ended it, or the terminal is
 * gone.
 */
static bool wait_on_screen(struct top *top, const struct lines *lines)
{
	double until = seconds_now() + top->interval, rest;
	struct pollfd from[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = top->signals, .events = POLLIN },
	};
	bool callers_shown = top->show_callers;
	double interval = top->interval;
	int key;

	while ((rest = until - seconds_now()) > 0) {
		poll(from, ARRAY_SIZE(from), milliseconds(top, rest));
		if (from[1].revents || from[0].revents & (POLLHUP | POLLERR))
			return false;
		while ((key = getch()) != ERR)
			if (!obey(top, key))
				return false;
		until += top->interval - interval;
		interval = top->interval;
		if (callers_shown != top->show_callers)
			until = time_of_first_look(top);
		callers_shown = top->show_callers;
		if (top->callers)
			callers_read(top->callers);
		draw(top, lines);
	}
	return true;
}

/* Returns whether no signal has ended the wait. */
static bool wait_quietly(struct top *top)
{
	double until = seconds_now() + top->interval, rest;
	struct pollfd signals = { .fd = top->signals, .events = POLLIN };

	while ((rest = until - seconds_now()) > 0) {
		if (poll(&signals, 1, milliseconds(top, rest)) > 0)
			return false;
		if (top->callers)
			callers_read(top->callers);
	}
	return true;
}

static void make_lines(struct top *top, struct lines *lines, const struct sample *now,
		       const struct sample *before)
{
	struct look look;

	if (!top->show_callers) {
		lines_make(lines, now, before);
	} else if (top->callers) {
		callers_look(top->callers, &look);
		lines_of_callers(lines, &look);
		callers_next(top->callers);
	} else {
		*lines = (struct lines){ };
		snprintf(lines_add(lines, LINE_NOTE)->text, LINE_TEXT, "Sync calls can't be traced: %s",
			 top->why);
	}
}

/* Shows one look; returns whether another one follows. */
static bool show(struct top *top, const struct sample *now, const struct sample *before)
{
	struct lines lines;
	bool more;

	make_lines(top, &lines, now, before);
	if (top->left)
		top->left--;
	if (top->batch)
		print_lines(&lines, top->left);
	else
		draw(top, &lines);
	more = top->left && (top->batch ? wait_quietly(top) : wait_on_screen(top, &lines));
	lines_free(&lines);
	return more;
}

static bool look(struct top *top)
{
	struct sample before = { }, now = { };
	bool good, more;

	do {
		good = sample_take(&now);
		more = good && show(top, &now, &before);
		sample_free(&before);
		before = now;
	} while (more);
	sample_free(&before);
	return good;
}

/* The screen would hide messages and go with them, so they are kept in a file meanwhile. */
static int keep_messages(int *terminal)
{
	int kept = memfd_create("forebay-top", MFD_CLOEXEC);

	fflush(stderr);
	*terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	if (kept >= 0 && *terminal >= 0)
		dup2(kept, STDERR_FILENO);
	return kept;
}

/* Shows what came since keep_messages(). */
static void show_messages(int kept, int terminal)
{
	char text[512];
	ssize_t n;

	fflush(stderr);
	if (terminal >= 0)
		dup2(terminal, STDERR_FILENO);
	for (off_t at = 0; kept >= 0 && (n = pread(kept, text, sizeof(text), at)) > 0; at += n)
		fwrite(text, 1, n, stderr);
	if (kept >= 0)
		close(kept);
	if (terminal >= 0)
		close(terminal);
}

static enum exit_status run_on_screen(struct top *top)
{
	int kept, terminal;
	bool good;

	if (!newterm(NULL, stdout, stdin)) {
		problem("the terminal '%s' is not known", getenv("TERM") ?: "");
		advice("`forebay top --batch` prints text.");
		return FAILED;
	}
	kept = keep_messages(&terminal);
	cbreak();
	noecho();
	nodelay(stdscr, true);
	keypad(stdscr, true);
	curs_set(0);
	good = look(top);
	endwin();
	show_messages(kept, terminal);
	return good ? DONE : FAILED;
}

/* A signal that has come meanwhile ends the process now. */
static void allow_signals(struct top *top, const sigset_t *before)
{
	struct signalfd_siginfo info;

	if (read(top->signals, &info, sizeof(info)) == sizeof(info)) {
		signal(info.ssi_signo, SIG_DFL);
		raise(info.ssi_signo);
	}
	close(top->signals);
	sigprocmask(SIG_SETMASK, before, NULL);
}

static enum exit_status run(struct top *top)
{
	enum exit_status status;

	if (top->show_callers)
		show_callers(top, true);
	if (top->batch && top->why) {
		problem("sync calls can't be traced: %s", top->why);
		return FAILED;
	}
	if (top->batch)
		status = look(top) ? DONE : FAILED;
	else
		status = run_on_screen(top);
	show_callers(top, false);
	return status;
}

static enum exit_status run_until_signal(struct top *top)
{
	enum exit_status status;
	sigset_t ends, before;

	tracing_signals(&ends);
	sigprocmask(SIG_BLOCK, &ends, &before);
	top->signals = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
	status = run(top);
	allow_signals(top, &before);
	return status;
}

static enum exit_status top(const struct verb *verb, int argc, char **argv)
{
	struct top top = { .interval = 2, .left = -1UL };
	double count;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_BATCH)
			top.batch = true;
		else if (option == OPT_CALLERS)
			top.show_callers = true;
		else if (option == OPT_INTERVAL && !parse_decimal(optarg, 3600, &top.interval))
			return usage_problem(verb, "--interval %s: expected seconds, up to 3600", optarg);
		else if (option == OPT_COUNT && (!parse_decimal(optarg, 1e9, &count) || count != (long)count))
			return usage_problem(verb, "--count %s: expected a number of looks", optarg);
		else if (option == OPT_COUNT)
			top.left = count;
	}
	if (optind < argc)
		return usage_problem(verb, "unexpected argument '%s'", argv[optind]);
	if (!is_screen(stdout) || !isatty(STDIN_FILENO))
		top.batch = true;
	return run_until_signal(&top);
}

const struct verb verb_top = {
	.name = "top",
	.arguments = "[--interval SECONDS] [--count N] [--batch] [--callers]",
	.summary = "watch what caches and logs do, as top(1) watches processes",
	.help = "Shows every mounted cache, write log and transit cache, with what it does a second and how\n"
		"long sync calls take; with write logs or transit caches this takes root.\n"
		"\n"
		"  --interval SECONDS  how long to wait between two looks; 2 if not given\n"
		"  --count N           end after N looks; the first one has no rates\n"
		"  --batch             print text; that is so, too, if this is no terminal\n"
		"  --callers           show which processes make sync calls on which files; takes root\n",
	.options = options,
	.run = top,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay top: what caches, write logs and transit caches do, a second at a time; on the whole terminal, or
 * as text for a file or a pipe.
 */
#include <ncurses.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/verb.h"
#include "table.h"

enum { OPT_INTERVAL = 1, OPT_COUNT, OPT_BATCH };

static const struct option options[] = {
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "batch", no_argument, NULL, OPT_BATCH },
	OPTION_HELP,
	{ }
};

struct top {
	double interval;	/* seconds */
	unsigned long left;	/* looks */
	bool batch;
	int first;		/* the line at the top */
};

static void print_lines(const struct lines *lines, unsigned long left)
{
	for (size_t i = 0; i < lines->n; i++)
		puts(lines->line[i].text);
	if (left)
		putchar('\n');
	fflush(stdout);
}

static void draw(struct top *top, const struct lines *lines)
{
	time_t now = time(NULL);
	char clock[16];
	int last = (int)lines->n - 1;

	if (top->first > last)
		top->first = last;
	if (top->first < 0)
		top->first = 0;
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&now));
	erase();
	mvprintw(0, 0, "forebay top   %s   every %g s   q: quit, +/-: interval, arrows: scroll", clock,
		 top->interval);
	for (int i = top->first; i < (int)lines->n && i - top->first + 2 < LINES; i++) {
		attrset(lines->line[i].kind == LINE_TITLE ? A_REVERSE : A_NORMAL);
		mvaddnstr(i - top->first + 2, 0, lines->line[i].text, COLS);
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
	case KEY_DOWN:
		top->first++;
		return true;
	case KEY_UP:
		top->first--;
	}
	return true;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Waits for the next look, and obeys keys meanwhile. False: a key ended it, or the terminal is gone. */
static bool wait_on_screen(struct top *top, const struct lines *lines)
{
	double until = seconds_now() + top->interval, rest;
	struct pollfd keyboard = { .fd = STDIN_FILENO, .events = POLLIN };
	double interval = top->interval;
	int key;

	while ((rest = until - seconds_now()) > 0) {
		poll(&keyboard, 1, (int)(rest * 1000) + 1);
		if (keyboard.revents & (POLLHUP | POLLERR))
			return false;
		while ((key = getch()) != ERR)
			if (!obey(top, key))
				return false;
		until += top->interval - interval;
		interval = top->interval;
		draw(top, lines);
	}
	return true;
}

static bool wait_quietly(double seconds)
{
	struct timespec time = { .tv_sec = seconds, .tv_nsec = (seconds - (time_t)seconds) * 1e9 };

	return !nanosleep(&time, NULL);
}

/* Shows one look; returns whether another one follows. */
static bool show(struct top *top, const struct sample *now, const struct sample *before)
{
	struct lines lines;
	bool more;

	lines_make(&lines, now, before);
	if (top->left)
		top->left--;
	if (top->batch)
		print_lines(&lines, top->left);
	else
		draw(top, &lines);
	more = top->left && (top->batch ? wait_quietly(top->interval) : wait_on_screen(top, &lines));
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

static enum exit_status run_on_screen(struct top *top)
{
	bool good;

	if (!initscr())
		return FAILED;
	cbreak();
	noecho();
	nodelay(stdscr, true);
	keypad(stdscr, true);
	curs_set(0);
	good = look(top);
	endwin();
	return good ? DONE : FAILED;
}

static enum exit_status top(const struct verb *verb, int argc, char **argv)
{
	struct top top = { .interval = 2, .left = -1UL };
	double count;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_BATCH)
			top.batch = true;
		else if (option == OPT_INTERVAL && !parse_decimal(optarg, 3600, &top.interval))
			return usage_problem(verb, "%s: expected seconds, up to 3600", optarg);
		else if (option == OPT_COUNT && !parse_decimal(optarg, 1e9, &count))
			return usage_problem(verb, "%s: expected a number of looks", optarg);
		else if (option == OPT_COUNT)
			top.left = count;
	}
	if (optind < argc)
		return usage_problem(verb, "unexpected argument '%s'", argv[optind]);
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		top.batch = true;
	if (top.batch)
		return look(&top) ? DONE : FAILED;
	return run_on_screen(&top);
}

const struct verb verb_top = {
	.name = "top",
	.arguments = "[--interval SECONDS] [--count N] [--batch]",
	.summary = "watch what caches and logs do, as top(1) watches processes",
	.help = "Shows every mounted cache, write log and transit cache, with what it does a second and how\n"
		"long sync calls take; with write logs or transit caches this takes root.\n"
		"\n"
		"  --interval SECONDS  how long to wait between two looks; 2 if not given\n"
		"  --count N           end after N looks; the first one has no rates\n"
		"  --batch             print text; that is so, too, if this is no terminal\n",
	.options = options,
	.run = top,
};

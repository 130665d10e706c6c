// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the command talks. A message says what happened to which object. The advice below it, indented, says
 * what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"

static const char *current_verb;

/**
 * reserve_standard_streams - keep the descriptors 0, 1 and 2 from being taken by a device
 *
 * An open takes the lowest free descriptor. If the caller has closed standard output or error, a device that
 * is opened for writing would get the messages. A descriptor of O_PATH can be neither read nor written.
 *
 * Return: false if one of them can't be kept.
 */
bool reserve_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
			return false;
	return true;
}

/**
 * message_set_verb - put a verb at the head of all messages from now on
 * @name: of the verb
 */
void message_set_verb(const char *name)
{
	current_verb = name;
}

/**
 * is_screen - whether a stream goes to a terminal that takes escape sequences
 * @to: the stream
 */
bool is_screen(FILE *to)
{
	const char *term = getenv("TERM");

	return isatty(fileno(to)) && term && strcmp(term, "dumb");
}

static bool colourful(FILE *to)
{
	const char *no_color = getenv("NO_COLOR");

	return is_screen(to) && !(no_color && *no_color);
}

/**
 * style - the escape sequence that begins a style
 * @to: where it is going to be written
 * @sgr: RED, BOLD ...
 *
 * Return: "" where colour is not wanted; valid until the next call.
 */
const char *style(FILE *to, const char *sgr)
{
	static char sequence[16];

	if (!colourful(to))
		return "";
	snprintf(sequence, sizeof(sequence), "\033[%sm", sgr);
	return sequence;
}

/**
 * plain - the escape sequence that ends all styles
 * @to: where it is going to be written
 */
const char *plain(FILE *to)
{
	return colourful(to) ? "\033[0m" : "";
}

/**
 * control_length - whether a text begins with a control character
 * @text: UTF-8
 *
 * Return: its length in bytes: 1, or 2 for one of U+0080 to U+009F; 0: it begins with none.
 */
size_t control_length(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if (*at == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
		return 2;
	return *at && (*at < ' ' || *at == 127);
}

/**
 * make_harmless - replace the control characters of a text, with which a name could steer a terminal
 * @text: each byte of them becomes "?"
 *
 * Return: @text.
 */
char *make_harmless(char *text)
{
	for (char *at = text; *at;) {
		size_t n = control_length(at);

		memset(at, '?', n);
		at += n ?: 1;
	}
	return text;
}

/**
 * print_name - print a name that others may have chosen
 * @name: its control characters are printed as "?"
 */
void print_name(const char *name)
{
	char *copy = strdup(name);

	fputs(copy ? make_harmless(copy) : "?", stdout);
	free(copy);
}

/**
 * print_of - print on standard output what is to be said of a device, an image or a mount point
 * @name: its name, as for print_name()
 * @format: the rest of the line, as for printf()
 */
void print_of(const char *name, const char *format, ...)
{
	va_list args;

	print_name(name);
	fputs(": ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}

/**
 * text_about - a text for a terminal
 * @name: what it is about, to stand before it with a colon; NULL: nothing
 * @format: the text, as for printf()
 * @args: for @format
 *
 * Return: the text without control characters, to be freed; NULL: out of memory.
 */
char *text_about(const char *name, const char *format, va_list args)
{
	char *text = NULL, *all = NULL;

	if (vasprintf(&text, format, args) < 0)
		return NULL;
	if (asprintf(&all, "%s%s%s", name ?: "", name ? ": " : "", text) < 0)
		all = NULL;
	free(text);
	return all ? make_harmless(all) : NULL;
}

/**
 * print_line - print a line on standard output with names in it
 * @format: the line, as for printf(); its control characters are printed as "?"
 */
void print_line(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = text_about(NULL, format, args);
	va_end(args);
	puts(text ?: "?");
	free(text);
}

static void say(const char *format, va_list args)
{
	char *text = text_about(NULL, format, args);

	fprintf(stderr, "%s\n", text ?: "out of memory");
	free(text);
}

/**
 * problem - say on standard error what went wrong
 * @format: a sentence that names the object, as for printf()
 */
void problem(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%sforebay%s%s:%s ", style(stderr, RED), current_verb ? " " : "",
		current_verb ? current_verb : "", plain(stderr));
	va_start(args, format);
	say(format, args);
	va_end(args);
}

/**
 * advice - say on standard error what to do about the last problem
 * @format: a sentence, as for printf()
 */
void advice(const char *format, ...)
{
	va_list args;

	fputs("    ", stderr);
	va_start(args, format);
	say(format, args);
	va_end(args);
}

/**
 * output_written - check that all output has been written
 *
 * Return: false, after a message, if not.
 */
bool output_written(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	problem("cannot write to standard output");
	return false;
}

/**
 * lower_advice - what to do about an error that the lower file system gave
 * @err: errno of a write-back
 *
 * Return: a sentence.
 */
const char *lower_advice(int err)
{
	switch (err) {
	case ENOSPC:
	case EDQUOT:
		return "Make room on the lower file system.";
	case EROFS:
		return "The lower file system is read-only: see why (dmesg), and remount it read-write.";
	case EIO:
		return "The storage below refuses the write: dmesg says more.";
	default:
		return "dmesg may say more.";
	}
}

/**
 * size_text - a readable size: whole bytes, whole KiB where that is exact, else one decimal
 * @text: where to put it
 * @bytes: how many
 *
 * Return: @text.
 */
const char *size_text(char text[SIZE_TEXT], uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned int unit = 0;

	while (unit + 1 < ARRAY_SIZE(units) && bytes >> 10 * (unit + 1))
		unit++;
	if (!bytes)
		snprintf(text, SIZE_TEXT, "0");
	else if (unit < 2 && !(bytes & ((1ULL << 10 * unit) - 1)))
		snprintf(text, SIZE_TEXT, "%llu %s", (unsigned long long)bytes >> 10 * unit, units[unit]);
	else
		snprintf(text, SIZE_TEXT, "%.1f %s", (double)bytes / (1ULL << 10 * unit), units[unit]);
	return text;
}


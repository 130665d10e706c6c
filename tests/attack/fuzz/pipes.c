// SPDX-License-Identifier: GPL-2.0-only
/* Pipes that hold pages of files and mappings for a while, and data that goes through pipes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"

#define PIPE_PAGES	16

/* What a pipe holds. A page in a pipe shows later stores until the file's page moves, then old bytes. */
static struct held {
	int in, out;
	uint32_t tags;
	char name[16];
} pipes[PIPES];

static _Alignas(4096) uint8_t bytes[PIPE_PAGES * PAGE];

static struct held *empty_pipe(uint32_t tags, const char *name)
{
	for (int i = 0; i < PIPES; i++) {
		struct held *held = &pipes[i];
		int ends[2];

		if (held->tags)
			continue;
		if (CALL("pipe", pipe2(ends, O_NONBLOCK), NEVER))
			return NULL;
		*held = (struct held) { .in = ends[1], .out = ends[0], .tags = tags };
		snprintf(held->name, sizeof(held->name), "%s", name);
		return held;
	}
	release_some();
	return NULL;
}

static void release(struct held *held)
{
	ssize_t got;

	while ((got = CALL("read of a pipe", read(held->out, bytes, sizeof(bytes)), MAY(EAGAIN))) > 0)
		check_tags(held->tags, held->name, "pipe that held pages", 0, bytes, got);
	close(held->in);
	close(held->out);
	held->tags = 0;
}

void release_some(void)
{
	struct held *held = &pipes[draw(PIPES)];

	if (!held->tags)
		return;
	note("release %s", held->name);
	release(held);
}

void release_all(void)
{
	for (int i = 0; i < PIPES; i++)
		if (pipes[i].tags)
			release(&pipes[i]);
}

void hold_memory(const void *from, long length, uint32_t tags, const char *name)
{
	struct held *held = empty_pipe(tags, name);
	struct iovec part = { (void *)from, length < PIPE_PAGES * PAGE ? length : PIPE_PAGES * PAGE };

	if (held)
		CALL("vmsplice", vmsplice(held->in, &part, 1, SPLICE_F_NONBLOCK), MAY(EAGAIN, EFAULT));
}

void hold_file(int fd, long offset, long length, uint32_t tags, const char *name)
{
	struct held *held = empty_pipe(tags, name);
	struct held *other;

	if (!held)
		return;
	CALL("splice to a pipe", splice(fd, &offset, held->in, NULL, length, SPLICE_F_NONBLOCK), MAY(EAGAIN));
	if (chance(3)) {
		other = empty_pipe(tags, name);
		if (other)
			CALL("tee", tee(held->out, other->in, length, SPLICE_F_NONBLOCK), MAY(EAGAIN));
	}
}

/* Makes a pipe hold pages of one of this process's files. */
void hold_some(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long offset, length, mapped;

	if (chance(2) || !mapping) {
		choose(file->model->size, PIPE_PAGES * PAGE, &offset, &length);
		note("hold %s %ld %ld", file->model->name, offset, length);
		if (length)
			hold_file(file->fd, offset, length, 1u << file->tag, file->model->name);
		return;
	}
	mapped = mapped_bytes(file, mapping);
	if (!mapped)
		return;
	choose(mapped, PIPE_PAGES * PAGE, &offset, &length);
	note("hold mapped %s %ld %ld%s", file->model->name, mapping->first * PAGE + offset, length, mapping->sync ? " MAP_SYNC" : "");
	hold_memory(mapping->address + offset, length, 1u << file->tag, file->model->name);
}

/* Writes to a file from memory that a pipe refers to. */
void write_by_pipe(void)
{
	struct file *file = one_of_mine();
	long offset, length, result;
	struct iovec part;
	int ends[2];

	choose(FILE_SIZE, PIPE_PAGES * PAGE - PAGE, &offset, &length);
	if (!length || pipe2(ends, O_NONBLOCK))
		return;
	if (length > (PIPE_PAGES - 1) * PAGE)
		length = (PIPE_PAGES - 1) * PAGE;
	fill(file->tag, bytes, length);
	part = (struct iovec) { bytes, length };
	note("splice to %s %ld %ld", file->model->name, offset, length);
	length = CALL("vmsplice", vmsplice(ends[1], &part, 1, SPLICE_F_NONBLOCK), NEVER);
	for (long done = 0, at = offset; done < length; done += result) {
		result = CALL("splice from a pipe", splice(ends[0], NULL, file->fd, &at, length - done, 0), NEVER);
		if (result <= 0)
			break;
		wrote(file, offset + done, bytes + done, result);
	}
	close(ends[0]);
	close(ends[1]);
}

void send_to_mine(void)
{
	struct file *from = one_of_mine(), *to = one_of_mine();
	long offset, length, to_at, result;
	off_t at;

	choose(from->model->size, 12 * PAGE, &offset, &length);
	if (!length || from == to)
		return;
	to_at = draw(FILE_SIZE - length);
	note("sendfile %s %ld -> %s %ld, %ld", from->model->name, offset, to->model->name, to_at, length);
	if (CALL("lseek", lseek(to->fd, to_at, SEEK_SET), NEVER) < 0)
		return;
	for (long done = 0; done < length; done += result) {
		at = offset + done;
		result = CALL("sendfile", sendfile(to->fd, from->fd, &at, length - done), NEVER);
		if (result <= 0) {
			if (!result)
				violation("short", "sendfile: %ld of %ld bytes", done, length);
			break;
		}
		wrote(to, to_at + done, from->model->bytes + offset + done, result);
	}
}

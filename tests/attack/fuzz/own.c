// SPDX-License-Identifier: GPL-2.0-only
/* Files that only this process changes, and the operations on them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

struct file own[OWN_FILES];

struct file *one_of_mine(void)
{
	return &own[draw(OWN_FILES)];
}

/* Chooses a range below @limit, mostly a short one. */
void choose(long limit, long most, long *offset, long *length)
{
	*offset = limit ? draw(limit) : 0;
	if (chance(4))
		*offset &= -PAGE;
	*length = 1 + draw(chance(3) ? most : 600);
	if (chance(4))
		*length = (*length + PAGE - 1) & -PAGE;
	if (*length > limit - *offset)
		*length = limit - *offset;
}

/* @bytes may lie inside the model. */
void wrote(struct file *file, long offset, const void *bytes, long length)
{
	memmove(file->model->bytes + offset, bytes, length);
	if (offset + length > (long)file->model->size)
		file->model->size = offset + length;
}

void became_zero(struct file *file, long offset, long length)
{
	if (offset < (long)file->model->size)
		memset(file->model->bytes + offset, 0, length < (long)file->model->size - offset ? length : (long)file->model->size - offset);
}

static void open_files(struct file *file)
{
	file->fd = CALL("open", open(file->path, O_RDWR), NEVER);
	file->direct = CALL("open direct", open(file->path, O_RDWR | O_DIRECT), NEVER);
	file->dsync = CALL("open synced", open(file->path, O_RDWR | (chance(2) ? O_SYNC : O_DSYNC)), NEVER);
}

static void close_files(struct file *file)
{
	CALL("close", close(file->fd), NEVER);
	CALL("close", close(file->direct), NEVER);
	CALL("close", close(file->dsync), NEVER);
}

void set_path(struct file *file, const char *name)
{
	snprintf(file->model->name, sizeof(file->model->name), "%s", name);
	snprintf(file->path, sizeof(file->path), "%s/%s", mount_point, name);
}

void reopen_file(struct file *file)
{
	close_files(file);
	open_files(file);
}

static void reopen(void)
{
	struct file *file = one_of_mine();

	note("reopen %s", file->model->name);
	reopen_file(file);
}

/* For the test of this program: changes the file without the model. */
static void cheat(void)
{
	struct file *file = &own[0];

	if (!selftest || me->number || file->model->size < 100 || me->operations < 300)
		return;
	if (pwrite(file->fd, "?", 1, 50) == 1)
		note("cheated");
}

void begin_own(int number)
{
	char name[16];

	for (int i = 0; i < OWN_FILES; i++) {
		struct file *file = &own[i];

		file->model = models[number][i];
		file->tag = TAG_OF_PROCESS(number);
		snprintf(name, sizeof(name), "p%d%c", number, 'a' + i);
		if (!file->model->exists) {
			set_path(file, name);
			CALL("creat", close(open(file->path, O_RDWR | O_CREAT | O_EXCL, i ? 0600 : 0644)), NEVER);
			file->model->exists = true;
		} else {
			snprintf(name, sizeof(name), "%s", file->model->name);
			set_path(file, name);
		}
		open_files(file);
	}
}

void end_own(void)
{
	for (int i = 0; i < OWN_FILES; i++) {
		unmap_all(&own[i]);
		close_files(&own[i]);
	}
}

const struct operation own_operations[] = {
	{ "write", write_some, 30 }, { "append", append, 12 }, { "write_direct", write_direct, 12 },
	{ "write_synced", write_synced, 12 }, { "read", read_some, 20 }, { "read_direct", read_direct, 10 },
	{ "read_whole", read_whole, 4 }, { "write_from_mapping", write_from_mapping, 8 },
	{ "read_into_mapping", read_into_mapping, 8 }, { "sync", sync_some, 25 }, { "fadvise", advise, 6 },
	{ "size", look_at_size, 4 }, { "seek", seek, 4 }, { "fiemap", map_extents, 1 }, { "claim", claim, 6 }, { "drop", drop, 3 },
	{ "nonsense", claim_nonsense, 2 }, { "reopen", reopen, 3 }, { "resize", resize, 5 }, { "fallocate", allocate, 8 },
	{ "shift", shift, 2 }, { "copy", copy, 5 }, { "names", give_other_names, 2 }, { "replace", replace, 1 },
	{ "tmpfile", replace_by_nameless, 1 }, { "attributes", set_attributes, 3 }, { "map", map_some, 10 }, { "unmap", unmap_some, 4 },
	{ "store", store, 30 }, { "load", load, 20 }, { "msync", sync_mapping, 8 }, { "madvise", advise_mapping, 8 },
	{ "mremap", move_mapping, 3 }, { "mprotect", protect_mapping, 3 }, { "mlock", lock_mapping, 4 }, { "private", map_privately, 5 },
	{ "proc", reach_by_proc, 3 }, { "fork", fork_with_mappings, 1 }, { "futex", wait_on_futex, 3 }, { "hold", hold_some, 6 },
	{ "release", release_some, 4 }, { "splice", write_by_pipe, 4 }, { "sendfile", send_to_mine, 4 },
	{ "async", read_or_write_async, 14 }, { "register", register_mapping, 1 }, { "cheat", cheat, 1 }, { NULL, NULL, 0 }
};

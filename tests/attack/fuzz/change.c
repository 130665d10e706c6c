// SPDX-License-Identifier: GPL-2.0-only
/* Sizes, holes, names and attributes of files that only this process changes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fuzz.h"

/* The model keeps zeros beyond the end of the file. */
static void set_size(struct file *file, long size)
{
	struct model *model = file->model;

	if (size < (long)model->size)
		memset(model->bytes + size, 0, model->size - size);
	model->size = size;
}

void resize(void)
{
	struct file *file = one_of_mine();
	long size = chance(3) ? (long)file->model->size - (long)draw(PAGE) : (long)draw(FILE_SIZE);
	int fd;

	if (size < 0 || chance(10))
		size = 0;
	note("truncate %s %ld -> %ld", file->model->name, (long)file->model->size, size);
	if (!size && chance(2)) {
		fd = CALL("open O_TRUNC", open(file->path, O_RDWR | O_TRUNC), NEVER);
		if (fd < 0)
			return;
		close(fd);
		set_size(file, 0);
	} else if (!CALL("ftruncate", ftruncate(file->fd, size), NEVER)) {
		set_size(file, size);
	}
}

void allocate(void)
{
	static const int modes[] = { 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
				     FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_UNSHARE_RANGE };
	int mode = modes[draw(sizeof(modes) / sizeof(*modes))];
	struct file *file = one_of_mine();
	long offset, length;

	choose(FILE_SIZE, 12 * PAGE, &offset, &length);
	note("fallocate %x %s %ld %ld", mode, file->model->name, offset, length);
	if (CALL("fallocate", fallocate(file->fd, mode, offset, length), MAY(EOPNOTSUPP)))
		return;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		became_zero(file, offset, length);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + length > (long)file->model->size)
		set_size(file, offset + length);
}

/* Collapses or inserts whole pages. */
void shift(void)
{
	struct file *file = one_of_mine();
	struct model *model = file->model;
	long pages = model->size / PAGE, first, nr = 1 + draw(4), size = model->size;
	bool insert = chance(2);

	if (pages < 6)
		return;
	first = draw(pages - nr - 1);
	if (insert && size + nr * PAGE > FILE_SIZE)
		return;
	note("%s %s page %ld, %ld pages, size %ld", insert ? "insert" : "collapse", model->name, first, nr, size);
	if (CALL(insert ? "insert" : "collapse", fallocate(file->fd, insert ? FALLOC_FL_INSERT_RANGE : FALLOC_FL_COLLAPSE_RANGE,
							   first * PAGE, nr * PAGE), MAY(EOPNOTSUPP, EINVAL)))
		return;
	if (insert) {
		memmove(model->bytes + (first + nr) * PAGE, model->bytes + first * PAGE, size - first * PAGE);
		memset(model->bytes + first * PAGE, 0, nr * PAGE);
		model->size = size + nr * PAGE;
	} else {
		memmove(model->bytes + first * PAGE, model->bytes + (first + nr) * PAGE, size - (first + nr) * PAGE);
		set_size(file, size - nr * PAGE);
	}
}

/* Copies between own files, or inside one: copy_file_range(), or a clone if the lower file system can. */
void copy(void)
{
	struct file *from = one_of_mine(), *to = one_of_mine();
	struct file_clone_range range;
	bool clone = chance(3);
	loff_t from_at, to_at;
	long offset, length, result;

	choose(from->model->size, 12 * PAGE, &offset, &length);
	if (clone) {
		offset &= -PAGE;
		length = (length + PAGE - 1) & -PAGE;
		if (offset + length > (long)from->model->size)
			length = ((long)from->model->size - offset) & -PAGE;
	}
	if (length <= 0)
		return;
	from_at = offset;
	to_at = draw(FILE_SIZE - length + 1) & (clone ? -PAGE : -1L);
	if (from == to && labs(from_at - to_at) < length)
		return;
	note("%s %s %ld -> %s %ld, %ld", clone ? "clone" : "copy", from->model->name, (long)from_at, to->model->name, (long)to_at, length);
	range = (struct file_clone_range) { .src_fd = from->fd, .src_offset = from_at, .src_length = length, .dest_offset = to_at };
	offset = to_at;
	if (clone) {
		result = CALL("clone", ioctl(to->fd, FICLONERANGE, &range), MAY(EOPNOTSUPP, EINVAL));
		if (!result)
			wrote(to, offset, from->model->bytes + range.src_offset, length);
	} else {
		result = CALL("copy_file_range", copy_file_range(from->fd, &from_at, to->fd, &to_at, length, 0), NEVER);
		if (result > 0)
			wrote(to, offset, from->model->bytes + range.src_offset, result);
		if (result >= 0 && result < length)
			violation("short", "copy: %ld of %ld bytes", result, length);
	}
}

void give_other_names(void)
{
	struct file *file = one_of_mine();
	char name[16], path[300];

	snprintf(name, sizeof(name), "p%d%c%s", me->number, (int)('a' + (file - own)), strchr(file->model->name, '.') ? "" : ".r");
	snprintf(path, sizeof(path), "%s/%s", mount_point, name);
	note("rename %s %s", file->model->name, name);
	if (chance(2)) {
		if (CALL("rename", rename(file->path, path), NEVER))
			return;
	} else {
		if (CALL("link", link(file->path, path), NEVER))
			return;
		if (chance(2))
			CALL("fsync", fsync(file->fd), NEVER);
		CALL("unlink", unlink(file->path), NEVER);
	}
	set_path(file, name);
	if (chance(3)) {
		int fd = CALL("open of the folder", open(mount_point, O_RDONLY), NEVER);

		CALL("fsync of the folder", fsync(fd), NEVER);
		close(fd);
	}
}

/* Deletes a file, reads it once more, and creates it again. */
void replace(void)
{
	struct file *file = one_of_mine();
	static uint8_t bytes[FILE_SIZE];
	long got;
	int fd;

	note("replace %s", file->model->name);
	if (chance(2))
		unmap_all(file);
	if (CALL("unlink", unlink(file->path), NEVER))
		return;
	got = CALL("pread of a deleted file", pread(file->fd, bytes, sizeof(bytes), 0), NEVER);
	if (got >= 0)
		check_model(file, "read of a deleted file", 0, bytes, got);
	if (chance(2))
		CALL("fsync of a deleted file", fsync(file->fd), NEVER);
	unmap_all(file);
	fd = CALL("creat", open(file->path, O_RDWR | O_CREAT | O_EXCL, file == own ? 0644 : 0600), NEVER);
	close(fd);
	set_size(file, 0);
	reopen_file(file);
}

/* Writes a file without a name, and then renames it over an existing file. */
void replace_by_nameless(void)
{
	struct file *file = one_of_mine();
	static uint8_t bytes[8 * PAGE];
	long length = 1 + draw(sizeof(bytes));
	char proc[64], path[300];
	int fd;

	note("tmpfile for %s, %ld", file->model->name, length);
	fd = CALL("O_TMPFILE", open(mount_point, O_TMPFILE | O_RDWR, file == own ? 0644 : 0600), NEVER);
	if (fd < 0)
		return;
	fill(file->tag, bytes, length);
	if (CALL("write to a nameless file", pwrite(fd, bytes, length, 0), NEVER) != length)
		violation("short", "write to a nameless file");
	if (chance(2))
		CALL("fsync of a nameless file", fsync(fd), NEVER);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	snprintf(path, sizeof(path), "%s/p%d.t", mount_point, me->number);
	unmap_all(file);
	if (!CALL("linkat", linkat(AT_FDCWD, proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW), NEVER) &&
	    !CALL("rename over", rename(path, file->path), NEVER)) {
		set_size(file, 0);
		wrote(file, 0, bytes, length);
		reopen_file(file);
	}
	close(fd);
}

static void set_xattrs(struct file *file)
{
	static const struct { uint32_t version; struct { uint16_t tag, perm; uint32_t id; } entry[3]; } acl = {
		2, { { 1, 6, ~0U }, { 4, 4, ~0U }, { 0x20, 4, ~0U } } };
	char value[600], got[600];
	long length = 1 + draw(sizeof(value) - 1);

	memset(value, 'a' + draw(26), length);
	if (!CALL("fsetxattr", fsetxattr(file->fd, "user.fuzz", value, length, 0), MAY(ENOSPC)) &&
	    (CALL("fgetxattr", fgetxattr(file->fd, "user.fuzz", got, sizeof(got)), NEVER) != length || memcmp(got, value, length)))
		violation("xattr", "%s: another value than was set", file->model->name);
	CALL("flistxattr", flistxattr(file->fd, got, sizeof(got)), NEVER);
	if (chance(2))
		CALL("fremovexattr", fremovexattr(file->fd, "user.fuzz"), MAY(ENODATA));
	if (file == own && chance(3))
		CALL("setfacl", fsetxattr(file->fd, "system.posix_acl_access", &acl, sizeof(acl), 0), MAY(EOPNOTSUPP));
}

void set_attributes(void)
{
	struct file *file = one_of_mine();
	int flags;

	note("attributes %s", file->model->name);
	switch (draw(4)) {
	case 0:
		set_xattrs(file);
		break;
	case 1:
		CALL("fchmod", fchmod(file->fd, file == own ? 0604 | (chance(2) ? 0040 : 0) : 0600), NEVER);
		break;
	case 2:
		CALL("futimens", futimens(file->fd, NULL), NEVER);
		break;
	case 3:
		if (!CALL("FS_IOC_GETFLAGS", ioctl(file->fd, FS_IOC_GETFLAGS, &flags), MAY(EOPNOTSUPP, ENOTTY))) {
			flags = (flags & ~FS_NODUMP_FL) | (chance(2) ? FS_NODUMP_FL : 0);
			CALL("FS_IOC_SETFLAGS", ioctl(file->fd, FS_IOC_SETFLAGS, &flags), MAY(EOPNOTSUPP, ENOTTY));
		}
		break;
	}
}

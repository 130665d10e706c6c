// SPDX-License-Identifier: GPL-2.0-only
/* Reads, writes, syncs and sizes of files that only this process changes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"

static _Alignas(4096) uint8_t data[FILE_SIZE], seen[FILE_SIZE + PAGE];

/* Chooses a range in units of a sector or a page. */
static void choose_direct(long *offset, long *length)
{
	long unit = chance(2) ? 512 : PAGE;

	*offset = draw(FILE_SIZE / unit) * unit;
	*length = (1 + draw(chance(3) ? 16 * PAGE / unit : 2)) * unit;
	if (*length > FILE_SIZE - *offset)
		*length = FILE_SIZE - *offset;
}

static void ended_write(struct file *file, const char *what, long offset, const void *bytes, long length, long result)
{
	if (result > 0)
		wrote(file, offset, bytes, result);
	if (result >= 0 && result < length)
		violation("short", "%s of %s at %ld: %ld of %ld bytes", what, file->model->name, offset, result, length);
}

static void ended_read(struct file *file, const char *what, long offset, const void *bytes, long length, long result)
{
	long left = (long)file->model->size - offset, due = left < 0 ? 0 : left < length ? left : length;

	if (result < 0)
		return;
	if (result != due)
		violation("short", "%s of %s at %ld: %ld bytes, not %ld of the %ld asked for; size %llu", what, file->model->name, offset,
			  result, due, length, (unsigned long long)file->model->size);
	check_model(file, what, offset, bytes, result < due ? result : due);
}

void write_some(void)
{
	struct file *file = one_of_mine();
	struct iovec parts[2];
	long offset, length, result;

	choose(FILE_SIZE, 16 * PAGE, &offset, &length);
	if (chance(4)) {
		offset = file->model->size;
		if (length > FILE_SIZE - offset)
			length = FILE_SIZE - offset;
	}
	if (!length)
		return;
	fill(file->tag, data, length);
	note("write %s %ld %ld", file->model->name, offset, length);
	parts[0] = (struct iovec) { data, length / 2 };
	parts[1] = (struct iovec) { data + length / 2, length - length / 2 };
	if (chance(3))
		result = CALL("pwritev", pwritev(file->fd, parts, 2, offset), NEVER);
	else
		result = CALL("pwrite", pwrite(file->fd, data, length, offset), NEVER);
	ended_write(file, "write", offset, data, length, result);
}

void append(void)
{
	struct file *file = one_of_mine();
	long length = 1 + draw(chance(4) ? 3 * PAGE : 300);
	int fd;

	if ((long)file->model->size + length > FILE_SIZE)
		return;
	fill(file->tag, data, length);
	note("append %s %llu %ld", file->model->name, (unsigned long long)file->model->size, length);
	fd = CALL("open to append", open(file->path, O_WRONLY | O_APPEND), NEVER);
	if (fd < 0)
		return;
	ended_write(file, "append", file->model->size, data, length, CALL("append", write(fd, data, length), NEVER));
	if (chance(2))
		CALL("fdatasync", fdatasync(fd), NEVER);
	CALL("close", close(fd), NEVER);
}

void write_direct(void)
{
	struct file *file = one_of_mine();
	long offset, length;

	choose_direct(&offset, &length);
	fill(file->tag, data, length);
	note("direct write %s %ld %ld", file->model->name, offset, length);
	ended_write(file, "direct write", offset, data, length, CALL("direct pwrite", DIRECT(pwrite(file->direct, data, length, offset)), NEVER));
}

void write_synced(void)
{
	struct file *file = one_of_mine();
	long offset, length;

	choose(FILE_SIZE, 8 * PAGE, &offset, &length);
	fill(file->tag, data, length);
	note("synced write %s %ld %ld", file->model->name, offset, length);
	ended_write(file, "synced write", offset, data, length, CALL("synced pwrite", pwrite(file->dsync, data, length, offset), NEVER));
}

void read_some(void)
{
	struct file *file = one_of_mine();
	long offset, length, result;

	choose(FILE_SIZE, FILE_SIZE, &offset, &length);
	if (!length)
		return;
	note("read %s %ld %ld", file->model->name, offset, length);
	if (chance(4)) {
		struct iovec part = { seen, length };

		result = CALL("preadv2 RWF_NOWAIT", preadv2(file->fd, &part, 1, offset, RWF_NOWAIT), MAY(EAGAIN, EOPNOTSUPP));
		if (result >= 0 && result <= length)	/* the call may end at the end of its memory */
			ended_read(file, "read without waiting", offset, seen, result, result);
		return;
	}
	ended_read(file, "read", offset, seen, length, CALL("pread", pread(file->fd, seen, length, offset), NEVER));
}

void read_direct(void)
{
	struct file *file = one_of_mine();
	long offset, length;

	choose_direct(&offset, &length);
	note("direct read %s %ld %ld", file->model->name, offset, length);
	ended_read(file, "direct read", offset, seen, length, CALL("direct pread", DIRECT(pread(file->direct, seen, length, offset)), NEVER));
}

void read_whole(void)
{
	struct file *file = one_of_mine();

	note("read whole %s", file->model->name);
	ended_read(file, "read of the whole", 0, seen, sizeof(seen), CALL("whole pread", pread(file->fd, seen, sizeof(seen), 0), NEVER));
}

/* Writes from a mapping into another file, or into other bytes of the same file. */
void write_from_mapping(void)
{
	struct file *from, *to = one_of_mine();
	struct mapping *mapping = some_mapping(&from);
	bool direct = chance(3);
	long offset, length, start, mapped;

	if (!mapping || !(mapped = mapped_bytes(from, mapping)))
		return;
	choose(mapped, 8 * PAGE, &start, &length);
	choose(FILE_SIZE - length, 1, &offset, &(long){ 0 });
	if (direct) {
		start &= -512L;
		offset &= -512L;
		length = length > mapped - start ? mapped - start : length;
		length &= -512L;
	}
	if (length <= 0 || (from == to && (direct || labs(mapping->first * PAGE + start - offset) < length + 512)))
		return;
	memcpy(data, from->model->bytes + mapping->first * PAGE + start, length);
	note("write %s%s %ld %ld from mapping of %s at %ld", direct ? "direct " : "", to->model->name, offset, length, from->model->name,
	     mapping->first * PAGE + start);
	ended_write(to, "write from a mapping", offset, data, length,
		    CALL("pwrite from a mapping", DIRECT(pwrite(direct ? to->direct : to->fd, mapping->address + start, length, offset)), NEVER));
}

void read_into_mapping(void)
{
	struct file *to, *from = one_of_mine();
	struct mapping *mapping = some_mapping(&to);
	bool direct = chance(3);
	long offset, length, start, mapped, result;

	if (!mapping || !mapping->writable || !from->model->size || !(mapped = mapped_bytes(to, mapping)))
		return;
	choose(mapped, 8 * PAGE, &start, &length);
	if (length > (long)from->model->size)
		length = from->model->size;
	offset = draw((long)from->model->size - length + 1);
	if (direct) {
		start &= -512L;
		offset &= -512L;
		length &= -512L;
	}
	if (length <= 0 || (from == to && (direct || labs(mapping->first * PAGE + start - offset) < length + 512)))
		return;
	memcpy(data, from->model->bytes + offset, length);
	note("read %s%s %ld %ld into mapping of %s at %ld", direct ? "direct " : "", from->model->name, offset, length, to->model->name,
	     mapping->first * PAGE + start);
	result = CALL("pread into a mapping", DIRECT(pread(direct ? from->direct : from->fd, mapping->address + start, length, offset)), NEVER);
	if (result > 0)
		wrote(to, mapping->first * PAGE + start, data, result);
	if (result >= 0 && result != length)
		violation("short", "read into a mapping: %ld of %ld bytes", result, length);
}

void sync_some(void)
{
	struct file *file = one_of_mine();

	note("sync %s", file->model->name);
	switch (draw(6)) {
	case 0: case 1:
		CALL("fsync", fsync(file->fd), NEVER);
		break;
	case 2: case 3:
		CALL("fdatasync", fdatasync(chance(2) ? file->fd : file->direct), NEVER);
		break;
	case 4:
		CALL("sync_file_range", sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
							SYNC_FILE_RANGE_WAIT_AFTER), NEVER);
		break;
	case 5:
		if (chance(4))
			CALL("syncfs", syncfs(file->fd), NEVER);
		break;
	}
}

void advise(void)
{
	static const int advices[] = { POSIX_FADV_DONTNEED, POSIX_FADV_DONTNEED, POSIX_FADV_WILLNEED, POSIX_FADV_SEQUENTIAL,
				       POSIX_FADV_RANDOM, POSIX_FADV_NORMAL, POSIX_FADV_NOREUSE };
	struct file *file = one_of_mine();
	int advice = advices[draw(sizeof(advices) / sizeof(*advices))];
	long offset, length;

	choose(FILE_SIZE, FILE_SIZE, &offset, &length);
	if (chance(2))
		offset = length = 0;
	note("fadvise %s %ld %ld %d", file->model->name, offset, length, advice);
	call("fadvise");
	errno = posix_fadvise(file->fd, offset, length, advice);
	expect("fadvise", errno ? -1 : 0, NEVER);
	if (chance(4))
		CALL("readahead", readahead(file->fd, 0, FILE_SIZE), NEVER);
}

void look_at_size(void)
{
	struct file *file = one_of_mine();
	struct statx stat;

	if (CALL("statx", statx(file->fd, "", AT_EMPTY_PATH, STATX_ALL, &stat), NEVER) < 0)
		return;
	if (stat.stx_size != file->model->size)
		violation("size", "%s is %llu bytes, not %llu", file->model->name, (unsigned long long)stat.stx_size,
			  (unsigned long long)file->model->size);
}

void seek(void)
{
	struct file *file = one_of_mine();
	long offset, data_at, hole_at, size = file->model->size;

	if (!size)
		return;
	offset = draw(size);
	note("seek %s %ld", file->model->name, offset);
	data_at = CALL("SEEK_DATA", lseek(file->fd, offset, SEEK_DATA), MAY(ENXIO));
	hole_at = CALL("SEEK_HOLE", lseek(file->fd, offset, SEEK_HOLE), NEVER);
	if (data_at < 0)
		data_at = size;
	for (long i = offset; i < data_at && i < size; i++) {
		if (file->model->bytes[i]) {
			violation("seek", "%s: SEEK_DATA from %ld says %ld, but there is data at %ld; size %ld", file->model->name, offset,
				  data_at, i, size);
			return;
		}
	}
	if (hole_at > size)
		violation("seek", "%s: SEEK_HOLE from %ld says %ld, size %ld", file->model->name, offset, hole_at, size);
}

void map_extents(void)
{
	struct { struct fiemap map; struct fiemap_extent extent[8]; } answer = {
		.map = { .fm_length = ~0ULL, .fm_extent_count = 8, .fm_flags = FIEMAP_FLAG_SYNC } };

	note("fiemap");
	CALL("fiemap", ioctl(one_of_mine()->fd, FS_IOC_FIEMAP, &answer), MAY(EOPNOTSUPP));
}

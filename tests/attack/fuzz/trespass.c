// SPDX-License-Identifier: GPL-2.0-only
/* Calls on files of other processes: those that a reader may make, and those that another user may not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../../../include/uapi/linux/forebay.h"
#include "others.h"

static _Alignas(4096) uint8_t data[PAGE];

/* Calls on a file that a process with read permission may make. */
void press_on(void)
{
	static const unsigned long commands[] = { FOREBAY_IOC_PIN, FOREBAY_IOC_UNPIN, FOREBAY_IOC_ATTACH, FOREBAY_IOC_DETACH };
	struct other *other = some_other();
	struct forebay_range range = { .size = sizeof(range) };
	struct forebay_dropped drop = { .size = sizeof(drop) };
	struct forebay_info info = { .size = sizeof(info) };

	if (!other)
		return;
	range.offset = draw(FILE_PAGES) * PAGE;
	range.length = 4 * PAGE;
	note("press on %s", other->name);
	switch (draw(8)) {
	case 0:
		CALL("fsync of another's", chance(2) ? fsync(other->fd) : fdatasync(other->direct), NEVER);
		break;
	case 1:
		call("fadvise of another's");
		errno = posix_fadvise(other->fd, 0, 0, chance(2) ? POSIX_FADV_DONTNEED : POSIX_FADV_WILLNEED);
		expect("fadvise of another's", errno ? -1 : 0, NEVER);
		break;
	case 2:
		CALL("ioctl drop of another's", ioctl(other->fd, FOREBAY_IOC_DROP, &drop), MAY(EPERM, EACCES, EBADF));
		break;
	case 3:
		CALL("ioctl info of another's", ioctl(other->fd, FOREBAY_IOC_INFO, &info), MAY(EPERM, EACCES, EBADF));
		break;
	case 4:
		CALL("ioctl of a range of another's", ioctl(other->fd, commands[draw(4)], &range),
		     MAY(EPERM, EACCES, EBADF, ENOMEM, EINVAL, ENOSPC, EOPNOTSUPP, EBUSY, ENXIO));
		break;
	case 5:
		if (other->map)
			CALL("mlock of another's", mlock(other->map, other->pages * PAGE), MAY(ENOMEM, EAGAIN, EPERM));
		break;
	case 6:
		if (other->map)
			CALL("munlock of another's", munlock(other->map, other->pages * PAGE), NEVER);
		break;
	case 7:
		if (other->map)
			CALL("msync of another's", msync(other->map, other->pages * PAGE, MS_SYNC), NEVER);
		break;
	}
}

static void must_fail(const struct other *other, const char *what, long result)
{
	call("");
	if (result >= 0)
		violation("trespass", "%s of %s succeeded", what, other->name);
	else if (errno == EIO)
		violation("EIO", "%s of %s", what, other->name);
}

#define REFUSED(what, expression)	(call(what), must_fail(other, what, (long)(expression)))

void trespass(void)
{
	struct other *other = some_other();
	loff_t zero = 0, page = PAGE;
	char *address;

	if (!other || !other->foreign)
		return;
	note("trespass %s", other->name);
	memset(data, '?', PAGE);
	switch (draw(9)) {
	case 0:
		REFUSED("open to write", open(other->path, O_RDWR));
		break;
	case 1:
		REFUSED("pwrite", pwrite(other->fd, data, PAGE, 0));
		break;
	case 2:
		REFUSED("truncate", chance(2) ? truncate(other->path, 0) : ftruncate(other->fd, 0));
		break;
	case 3:
		REFUSED("fallocate", fallocate(other->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
		break;
	case 4:
		REFUSED("unlink", unlink(other->path));
		break;
	case 5:
		address = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, other->fd, 0);
		REFUSED("mmap to write", address == MAP_FAILED ? -1 : 0);
		if (other->map && !other->private)
			REFUSED("mprotect to write", mprotect(other->map, PAGE, PROT_READ | PROT_WRITE));
		break;
	case 6:
		REFUSED("setxattr", fsetxattr(other->fd, "user.trespass", data, 4, 0));
		break;
	case 7:
		REFUSED("copy_file_range", copy_file_range(other->fd, &zero, other->fd, &page, PAGE, 0));
		break;
	case 8:
		REFUSED("chmod", chmod(other->path, 0777));
		break;
	}
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * libforebay: thin calls over the ioctls of include/uapi/linux/forebay.h. No state, no allocation;
 * safe in any thread.
 */
#include <errno.h>
#include <forebay.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/*
 * The ioctl numbers of Forebay may mean something else to another file system, or to a device whose node
 * lies on a forebay mount. So the type of file system and file is checked first.
 */
static int call(int fd, unsigned long command, void *argument)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) || fstat(fd, &st))
		return -1;
	if ((unsigned int)fs.f_type != FOREBAY_SUPER_MAGIC || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
		errno = ENOTTY;
		return -1;
	}
	return ioctl(fd, command, argument) < 0 ? -1 : 0;
}

/* A negative offset or length becomes a large unsigned one, which the kernel refuses. */
static int call_range(int fd, unsigned long command, off_t offset, off_t length, unsigned int flags)
{
	struct forebay_range range = {
		.size = sizeof(range), .flags = flags, .offset = (__u64)offset, .length = (__u64)length };

	return call(fd, command, &range);
}

void *forebay_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	if ((flags & MAP_TYPE) == MAP_PRIVATE || (flags & MAP_ANONYMOUS)) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	flags = (flags & ~MAP_TYPE) | MAP_SHARED_VALIDATE | MAP_SYNC;
	return mmap(address, length, protection, flags, fd, offset);
}

int forebay_pin(int fd, off_t offset, off_t length, unsigned int flags)
{
	return call_range(fd, FOREBAY_IOC_PIN, offset, length, flags);
}

int forebay_unpin(int fd, off_t offset, off_t length, unsigned int flags)
{
	return call_range(fd, FOREBAY_IOC_UNPIN, offset, length, flags);
}

int forebay_attach(int fd, off_t offset, off_t length, unsigned int flags)
{
	return call_range(fd, FOREBAY_IOC_ATTACH, offset, length, flags);
}

int forebay_detach(int fd, off_t offset, off_t length, unsigned int flags)
{
	return call_range(fd, FOREBAY_IOC_DETACH, offset, length, flags);
}

int forebay_drop(int fd, off_t offset, off_t length, struct forebay_dropped *result)
{
	struct forebay_dropped drop = {
		.size = sizeof(drop), .offset = (__u64)offset, .length = (__u64)length };
	int ret = call(fd, FOREBAY_IOC_DROP, &drop);

	if (!ret && result)
		*result = drop;
	return ret;
}

int forebay_range_info(int fd, off_t offset, off_t length, unsigned int flags, struct forebay_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->flags = flags;
	info->offset = (__u64)offset;
	info->length = (__u64)length;
	return call(fd, FOREBAY_IOC_INFO, info);
}

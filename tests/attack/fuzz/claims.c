// SPDX-License-Identifier: GPL-2.0-only
/* Forebay's own calls on files that only this process changes: pins, attached ranges, drops, nonsense. */
#include <errno.h>
#include <sys/ioctl.h>

#include "../../../include/uapi/linux/forebay.h"
#include "fuzz.h"

/* Makes each of Forebay's range calls, with valid ranges. */
void claim(void)
{
	static const unsigned long commands[] = { FOREBAY_IOC_PIN, FOREBAY_IOC_UNPIN, FOREBAY_IOC_ATTACH, FOREBAY_IOC_DETACH };
	struct file *file = one_of_mine();
	struct forebay_range range = { .size = sizeof(range) };
	int command = draw(4);
	long offset, length;

	choose(FILE_SIZE, 12 * PAGE, &offset, &length);
	range.offset = offset;
	range.length = chance(8) ? 0 : length;
	note("claim %d %s %ld %ld", command, file->model->name, offset, length);
	CALL("ioctl of a range", ioctl(file->fd, commands[command], &range), MAY(ENOMEM, EINVAL, ENOSPC, EOPNOTSUPP, EBUSY));
}

void drop(void)
{
	struct file *file = one_of_mine();
	struct forebay_dropped range = { .size = sizeof(range) };
	struct forebay_info info = { .size = sizeof(info), .flags = draw(2) };

	note("drop %s", file->model->name);
	if (chance(2))
		CALL("ioctl drop", ioctl(file->fd, FOREBAY_IOC_DROP, &range), NEVER);
	CALL("ioctl info", ioctl(file->fd, FOREBAY_IOC_INFO, &info), NEVER);
}

/* Passes random bytes to ioctl(2). What is valid by chance does no harm, but a drop evicts pages. */
void claim_nonsense(void)
{
	union { struct forebay_range range; uint64_t word[64]; } any;
	unsigned int number = draw(12), size = draw(2) ? 24 : draw(4096);
	unsigned long command = (chance(2) ? 0x40000000UL : 0xC0000000UL) | size << 16 | 0xfb00 | number;
	void *where = chance(6) ? (void *)draw(UINT64_MAX) : &any;

	if (number == 4 || number == 6)		/* a valid pin could take too many pages */
		return;
	for (int i = 0; i < 64; i++)
		any.word[i] = draw(3) ? draw(UINT64_MAX) >> draw(64) : 0;
	any.range.size = chance(2) ? sizeof(any.range) : draw(8192);
	note("nonsense %lx", command);
	CALL("ioctl of nonsense", ioctl(one_of_mine()->fd, command, where),
	     MAY(EINVAL, E2BIG, EFAULT, ENOTTY, EPERM, EOPNOTSUPP, ENOSPC, ENOMEM));
}

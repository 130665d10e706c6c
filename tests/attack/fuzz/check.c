// SPDX-License-Identifier: GPL-2.0-only
/* What bytes must be, and accesses to mappings that may end in SIGBUS. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../../include/uapi/linux/forebay.h"
#include "fuzz.h"

static sigjmp_buf after_fault;
static volatile bool guarded;

static void on_bus_error(int number)
{
	if (guarded)
		siglongjmp(after_fault, 1);
	violation("signal", "signal %d outside of a guarded access, during %s", number, me->call);
	_exit(3);
}

void begin_guard(void)
{
	struct sigaction action = { .sa_handler = on_bus_error, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

/* memcpy() of which either end may be a mapping; false after SIGBUS. */
bool copy_guarded(void *to, const void *from, long length)
{
	if (sigsetjmp(after_fault, 0)) {
		guarded = false;
		return false;
	}
	guarded = true;
	memcpy(to, from, length);
	guarded = false;
	return true;
}

bool touch_guarded(volatile char *at)
{
	char byte;

	return copy_guarded(&byte, (const void *)at, 1);
}

/* Each byte carries the tag of the process that wrote it. */
void fill(uint8_t tag, void *bytes, long length)
{
	uint64_t word = draw(UINT64_MAX);
	uint8_t *byte = bytes;

	for (long i = 0; i < length; i++)
		byte[i] = tag << 4 | (1 + (word >> (i & 31)) % 15);
}

static const char *kind_of(uint8_t got, uint8_t expected, uint8_t tag)
{
	if (!got)
		return "zero where a byte was written";
	if (got >> 4 != tag)
		return "foreign byte";
	return expected ? "stale byte" : "byte where there is a hole";
}

/* Describes a page's state in the cache, and the byte as read(2) and a direct read return it. */
static void describe(const struct file *file, long at, char *text, size_t length)
{
	struct forebay_info info = { .size = sizeof(info), .offset = at & -PAGE, .length = PAGE };
	static _Alignas(4096) uint8_t page[PAGE];
	int by_read = -1, direct = -1;

	if (ioctl(file->fd, FOREBAY_IOC_INFO, &info))
		info.clean = info.out_of_sync = info.dirty = 99;
	if (pread(file->fd, page, 1, at) == 1)
		by_read = page[0];
	if (pread(file->direct, page, PAGE, at & -PAGE) > at % PAGE)
		direct = page[at % PAGE];
	snprintf(text, length, "page: clean %llu, out-of-sync %llu, dirty %llu, pinned %llu, busy %llu, volatile %llu, "
		 "attributes %x; read once more %02x, directly %02x", info.clean, info.out_of_sync, info.dirty, info.pinned, info.busy,
		 info.volatile_pages, info.attributes, by_read, direct);
}

/* Checks bytes of a file that only this process changes. Beyond its end a mapping shows zeros. */
void check_model(struct file *file, const char *how, long offset, const void *bytes, long length)
{
	struct model *model = file->model;
	const uint8_t *got = bytes;
	long first = -1, last = -1, wrong = 0;
	char text[300];

	for (long i = 0; i < length; i++) {
		long at = offset + i;
		uint8_t expected = at < (long)model->size ? model->bytes[at] : 0;

		if (got[i] == expected)
			continue;
		if (first < 0)
			first = at;
		last = at;
		wrong++;
	}
	if (first < 0)
		return;
	describe(file, first, text, sizeof(text));
	violation("bytes", "%s of %s at %ld, %ld bytes: %ld wrong from %ld (page %ld + %ld) to %ld; %02x, not %02x: %s; size %llu; %s", how,
		  model->name, offset, length, wrong, first, first / PAGE, first % PAGE, last, got[first - offset],
		  first < (long)model->size ? model->bytes[first] : 0,
		  kind_of(got[first - offset], first < (long)model->size ? model->bytes[first] : 0, file->tag),
		  (unsigned long long)model->size, text);
	/* The model takes over what was read, so that each difference is reported once. */
	for (long i = 0; i < length && offset + i < (long)model->size; i++)
		model->bytes[offset + i] = got[i];
}

/* Checks bytes of a file that other processes change: zeros, or bytes with one of the tags. */
void check_tags(uint32_t tags, const char *name, const char *how, long offset, const void *bytes, long length)
{
	const uint8_t *got = bytes;

	for (long i = 0; i < length; i++) {
		if (!got[i] || (tags & 1u << (got[i] >> 4)))
			continue;
		violation("foreign", "%s of %s at %ld, %ld bytes: byte %ld (page %ld + %ld) is %02x, of tag %d", how, name, offset, length,
			  offset + i, (offset + i) / PAGE, (offset + i) % PAGE, got[i], got[i] >> 4);
		return;
	}
}

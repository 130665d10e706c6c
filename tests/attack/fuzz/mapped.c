// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of files that only this process changes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

static _Alignas(4096) uint8_t data[FILE_SIZE + PAGE];

struct mapping *mapping_of(struct file *file)
{
	unsigned int nr = draw(MAPPINGS);

	for (int i = 0; i < MAPPINGS; i++) {
		struct mapping *mapping = &file->mapping[(nr + i) % MAPPINGS];

		if (mapping->address)
			return mapping;
	}
	return NULL;
}

struct mapping *some_mapping(struct file **file)
{
	*file = one_of_mine();
	return mapping_of(*file);
}

/* The number of the mapping's bytes that are inside the file. */
long mapped_bytes(const struct file *file, const struct mapping *mapping)
{
	long left = (long)file->model->size - mapping->first * PAGE;

	return left < 0 ? 0 : left < mapping->pages * PAGE ? left : mapping->pages * PAGE;
}

static void unmap_one(struct mapping *mapping)
{
	CALL("munmap", munmap(mapping->address, mapping->pages * PAGE), NEVER);
	mapping->address = NULL;
}

void unmap_all(struct file *file)
{
	for (int i = 0; i < MAPPINGS; i++)
		if (file->mapping[i].address)
			unmap_one(&file->mapping[i]);
}

void map_some(void)
{
	struct file *file = one_of_mine();
	struct mapping *slot = NULL;
	unsigned int how = draw(6);
	int flags = how < 2 && !plain ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
	char *address;

	for (int i = 0; i < MAPPINGS && !slot; i++)
		if (!file->mapping[i].address)
			slot = &file->mapping[i];
	if (!slot)
		return;
	*slot = (struct mapping) { .first = draw(FILE_PAGES), .writable = !chance(4), .sync = how < 2 && !plain };
	slot->pages = 1 + draw(chance(3) ? FILE_PAGES - slot->first : 4);
	if (slot->pages > FILE_PAGES - slot->first)
		slot->pages = FILE_PAGES - slot->first;
	if (how == 2)
		flags |= MAP_POPULATE;
	note("map %s pages %ld + %ld%s%s", file->model->name, slot->first, slot->pages, slot->sync ? " MAP_SYNC" : "",
	     slot->writable ? "" : " to be read");
	call("mmap");
	address = mmap(NULL, slot->pages * PAGE, PROT_READ | (slot->writable ? PROT_WRITE : 0), flags, file->fd, slot->first * PAGE);
	if (expect("mmap", address == MAP_FAILED ? -1 : 0, NEVER) >= 0)
		slot->address = address;
}

void unmap_some(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long pages;

	if (!mapping)
		return;
	note("munmap %s page %ld", file->model->name, mapping->first);
	if (mapping->pages > 1 && chance(2)) {		/* the end of it */
		pages = 1 + draw(mapping->pages - 1);
		CALL("munmap", munmap(mapping->address + pages * PAGE, (mapping->pages - pages) * PAGE), NEVER);
		mapping->pages = pages;
	} else {
		unmap_one(mapping);
	}
}

/* Reports a failed access inside the file, and after how many tries it succeeds. */
static void no_access(const struct file *file, const struct mapping *mapping, long at, const char *what)
{
	int tries = 1;

	call("access again after SIGBUS");
	while (tries < 30 && !touch_guarded(mapping->address + at % (mapping->pages * PAGE))) {
		tries++;
		usleep(100000);
	}
	call("");
	violation("SIGBUS", "%s %s byte %ld of %llu, mapped %s from page %ld; %d tries until it could be read", what, file->model->name,
		  mapping->first * PAGE + at, (unsigned long long)file->model->size, mapping->sync ? "MAP_SYNC" : "plainly",
		  mapping->first, tries);
}

void store(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long at, length, mapped;

	if (!mapping || !mapping->writable || !(mapped = mapped_bytes(file, mapping)))
		return;
	choose(mapped, 4 * PAGE, &at, &length);
	fill(file->tag, data, length);
	note("store %s %ld %ld%s", file->model->name, mapping->first * PAGE + at, length, mapping->sync ? " MAP_SYNC" : "");
	call("store");
	if (copy_guarded(mapping->address + at, data, length)) {
		wrote(file, mapping->first * PAGE + at, data, length);
	} else {
		no_access(file, mapping, at, "store to");
		/* The store may have changed some of the bytes. */
		if (pread(file->fd, data, length, mapping->first * PAGE + at) == length)
			wrote(file, mapping->first * PAGE + at, data, length);
	}
}

void load(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long at, length, mapped;

	if (!mapping || !(mapped = mapped_bytes(file, mapping)))
		return;
	mapped = (mapped + PAGE - 1) & -PAGE;		/* the last page reaches beyond the file's end */
	choose(mapped, 6 * PAGE, &at, &length);
	note("load %s %ld %ld%s", file->model->name, mapping->first * PAGE + at, length, mapping->sync ? " MAP_SYNC" : "");
	call("load");
	if (copy_guarded(data, mapping->address + at, length))
		check_model(file, mapping->sync ? "MAP_SYNC mapping" : "mapping", mapping->first * PAGE + at, data, length);
	else
		no_access(file, mapping, at, "load from");
}

void sync_mapping(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);

	if (!mapping)
		return;
	note("msync %s page %ld", file->model->name, mapping->first);
	CALL("msync", msync(mapping->address, mapping->pages * PAGE, chance(4) ? MS_ASYNC : MS_SYNC | (chance(4) ? MS_INVALIDATE : 0)),
	     MAY(EBUSY));	/* MS_INVALIDATE of locked memory */
}

/* mlock() has split the mapping. The call failed at a locked part, and has removed pages before it. */
static void partly_removed(struct file *file, long first, long pages)
{
	static const uint8_t zeros[PAGE];
	long got;

	for (; pages; first++, pages--) {
		got = pread(file->fd, data, PAGE, first * PAGE);
		if (got > 0 && !memcmp(data, zeros, got))
			became_zero(file, first * PAGE, PAGE);
	}
}

void advise_mapping(void)
{
	static const int advices[] = { MADV_DONTNEED, MADV_DONTNEED, MADV_REMOVE, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_PAGEOUT,
				       MADV_COLD, MADV_WILLNEED, MADV_RANDOM, MADV_SEQUENTIAL, MADV_NORMAL, MADV_HUGEPAGE, MADV_COLLAPSE,
				       MADV_DONTFORK, MADV_DOFORK, MADV_FREE, MADV_MERGEABLE, MADV_DONTDUMP };
	int advice = advices[draw(sizeof(advices) / sizeof(*advices))];
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long pages, first, result;

	if (!mapping)
		return;
	first = draw(mapping->pages);
	pages = 1 + draw(mapping->pages - first);
	if (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE) {
		if ((first + pages) * PAGE > mapped_bytes(file, mapping))
			return;
		if (advice == MADV_POPULATE_WRITE && !mapping->writable)
			return;
	}
	note("madvise %s page %ld + %ld: %d", file->model->name, mapping->first + first, pages, advice);
	/* The errors: locked memory, advice for private memory only, no huge page available. */
	result = CALL("madvise", madvise(mapping->address + first * PAGE, pages * PAGE, advice),
		      advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE ? NEVER :
		      MAY(EINVAL, EACCES, EAGAIN, ENOMEM, EOPNOTSUPP, EBUSY));
	if (!result && advice == MADV_REMOVE)
		became_zero(file, (mapping->first + first) * PAGE, pages * PAGE);
	else if (result && advice == MADV_REMOVE)
		partly_removed(file, mapping->first + first, pages);
}

void move_mapping(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long pages;
	char *address;

	if (!mapping)
		return;
	pages = 1 + draw(FILE_PAGES - mapping->first);
	note("mremap %s page %ld: %ld -> %ld", file->model->name, mapping->first, mapping->pages, pages);
	call("mremap");
	address = mremap(mapping->address, mapping->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
	/* The errors: munlock() of a part has split the mapping; the limit of locked memory is reached. */
	if (expect("mremap", address == MAP_FAILED ? -1 : 0, MAY(EFAULT, EAGAIN, ENOMEM)) >= 0) {
		mapping->address = address;
		mapping->pages = pages;
	}
}

void protect_mapping(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long pages, first;

	if (!mapping)
		return;
	first = draw(mapping->pages);
	pages = 1 + draw(mapping->pages - first);
	note("mprotect %s page %ld + %ld", file->model->name, mapping->first + first, pages);
	CALL("mprotect", mprotect(mapping->address + first * PAGE, pages * PAGE, chance(2) ? PROT_NONE : PROT_READ), NEVER);
	CALL("mprotect", mprotect(mapping->address + first * PAGE, pages * PAGE, PROT_READ | (mapping->writable ? PROT_WRITE : 0)), NEVER);
}

void lock_mapping(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long pages, first;
	char *at;

	if (!mapping)
		return;
	first = draw(mapping->pages);
	pages = 1 + draw(mapping->pages - first);
	at = mapping->address + first * PAGE;
	note("mlock %s page %ld + %ld", file->model->name, mapping->first + first, pages);
	switch (draw(4)) {
	case 0:
		CALL("mlock", mlock(at, pages * PAGE), MAY(ENOMEM, EAGAIN, EPERM));
		break;
	case 1:
		CALL("mlock2", mlock2(at, pages * PAGE, MLOCK_ONFAULT), MAY(ENOMEM, EAGAIN, EPERM));
		break;
	default:
		CALL("munlock", munlock(mapping->address, mapping->pages * PAGE), NEVER);
	}
}

/* A private mapping shows the file until a page of it is stored to. */
void map_privately(void)
{
	struct file *file = one_of_mine();
	long size = file->model->size, page, length;
	char *map;

	if (!size)
		return;
	page = draw((size + PAGE - 1) / PAGE);
	length = size - page * PAGE < 3 * PAGE ? size - page * PAGE : 3 * PAGE;
	note("private %s page %ld, %ld", file->model->name, page, length);
	call("private mmap");
	map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | (chance(3) ? MAP_POPULATE : 0), file->fd, page * PAGE);
	if (expect("private mmap", map == MAP_FAILED ? -1 : 0, NEVER) < 0)
		return;
	call("access to a private mapping");
	if (!copy_guarded(data, map, length) || (chance(2) && !copy_guarded(map, data, length)))
		violation("SIGBUS", "private mapping of %s, page %ld", file->model->name, page);
	else
		check_model(file, "private mapping", page * PAGE, map, length);
	CALL("munmap", munmap(map, 3 * PAGE), NEVER);
}

/* Reads or writes by /proc/self/mem, as debuggers do. */
void reach_by_proc(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	struct iovec to = { data, 0 }, from;
	long at, length, mapped;
	int fd;

	if (!mapping || !(mapped = mapped_bytes(file, mapping)))
		return;
	choose(mapped, 4 * PAGE, &at, &length);
	from = (struct iovec) { mapping->address + at, length };
	to.iov_len = length;
	note("proc %s %ld %ld", file->model->name, mapping->first * PAGE + at, length);
	if (chance(2)) {
		if (CALL("process_vm_readv", process_vm_readv(getpid(), &to, 1, &from, 1, 0), MAY(ENOSYS)) == length)
			check_model(file, "process_vm_readv", mapping->first * PAGE + at, data, length);
	} else if (mapping->writable) {
		fd = open("/proc/self/mem", O_RDWR);
		fill(file->tag, data, length);
		if (CALL("write to /proc/self/mem", pwrite(fd, data, length, (off_t)(uintptr_t)(mapping->address + at)), NEVER) == length)
			wrote(file, mapping->first * PAGE + at, data, length);
		close(fd);
	}
}

void fork_with_mappings(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	long mapped;
	int status;
	pid_t pid;

	if (!mapping || !(mapped = mapped_bytes(file, mapping)))
		return;
	note("fork");
	call("fork");
	pid = fork();
	if (!pid) {		/* SIGBUS or SIGSEGV is fine: the mapping may be MADV_DONTFORK */
		touch_guarded(mapping->address + draw(mapped));
		_exit(0);
	}
	if (expect("fork", pid, MAY(EAGAIN)) > 0 && (CALL("wait", waitpid(pid, &status, 0), NEVER) < 0 || status))
		violation("fork", "the child ended with %x", status);
}

/* The wait ends by its timeout, or as the word has another value. The wake succeeds, with MAP_SYNC too. */
void wait_on_futex(void)
{
	struct timespec soon = { .tv_nsec = 1000000 };
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	uint32_t value;
	long at, mapped;

	if (!mapping || !mapping->writable || (mapped = mapped_bytes(file, mapping)) < 8)
		return;
	at = draw(mapped / 4) * 4;
	note("futex %s %ld", file->model->name, mapping->first * PAGE + at);
	call("load");
	if (!copy_guarded(&value, mapping->address + at, 4)) {
		no_access(file, mapping, at, "load from");
		return;
	}
	CALL("futex wait", syscall(SYS_futex, mapping->address + at, FUTEX_WAIT, value, &soon, NULL, 0), MAY(ETIMEDOUT, EAGAIN));
	CALL("futex wake", syscall(SYS_futex, mapping->address + at, FUTEX_WAKE, 1, NULL, NULL, 0), NEVER);
}

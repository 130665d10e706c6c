// SPDX-License-Identifier: GPL-2.0-only
/* libaio's calls and io_uring, several requests at once, from plain memory, registered memory, mappings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"

#define DEPTH	4
#define PIECE	(8 * PAGE)

static struct io_uring ring;
static struct io_uring pinning;		/* only pins mappings in memory */
static bool pins;
static aio_context_t context;
static uint8_t *memory;			/* DEPTH pieces, registered */

struct request {
	long offset, length, result;
	bool is_write;
	uint8_t *bytes;
};

void begin_async(void)
{
	struct iovec part;

	memory = mmap(NULL, DEPTH * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	part = (struct iovec) { memory, DEPTH * PIECE };
	if (memory == MAP_FAILED || io_uring_queue_init(2 * DEPTH, &ring, 0) || io_uring_queue_init(2, &pinning, 0) ||
	    syscall(SYS_io_setup, DEPTH, &context) || io_uring_register_buffers(&ring, &part, 1)) {
		perror("asynchronous I/O");
		_exit(2);
	}
}

static void by_uring(int fd, struct request *requests, unsigned int nr)
{
	bool registered = chance(2), sync = chance(4);
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;

	for (unsigned int i = 0; i < nr; i++) {
		struct request *request = &requests[i];

		sqe = io_uring_get_sqe(&ring);
		if (request->is_write && registered)
			io_uring_prep_write_fixed(sqe, fd, request->bytes, request->length, request->offset, 0);
		else if (request->is_write)
			io_uring_prep_write(sqe, fd, request->bytes, request->length, request->offset);
		else if (registered)
			io_uring_prep_read_fixed(sqe, fd, request->bytes, request->length, request->offset, 0);
		else
			io_uring_prep_read(sqe, fd, request->bytes, request->length, request->offset);
		sqe->user_data = i;
	}
	if (sync) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_fsync(sqe, fd, chance(2) ? IORING_FSYNC_DATASYNC : 0);
		sqe->user_data = DEPTH;
	}
	CALL("io_uring_submit", io_uring_submit(&ring), NEVER);
	for (unsigned int i = 0; i < nr + sync; i++) {
		call("io_uring_wait_cqe");
		if (io_uring_wait_cqe(&ring, &cqe)) {
			violation("io_uring", "no completion");
			break;
		}
		if (cqe->user_data < DEPTH)
			requests[cqe->user_data].result = cqe->res;
		else if (cqe->res)
			violation("error", "fsync by io_uring: %s", strerror(-cqe->res));
		io_uring_cqe_seen(&ring, cqe);
	}
	call("");
}

static void by_aio(int fd, struct request *requests, unsigned int nr)
{
	struct iocb control[DEPTH], *list[DEPTH];
	struct io_event events[DEPTH];
	long submitted = 0, result;

	for (unsigned int i = 0; i < nr; i++) {
		control[i] = (struct iocb) { .aio_data = i, .aio_lio_opcode = requests[i].is_write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
					     .aio_fildes = fd, .aio_buf = (uintptr_t)requests[i].bytes,
					     .aio_nbytes = requests[i].length, .aio_offset = requests[i].offset };
		list[i] = &control[i];
	}
	while (submitted < (long)nr) {
		result = CALL("io_submit", syscall(SYS_io_submit, context, nr - submitted, list + submitted), NEVER);
		if (result <= 0)
			break;
		submitted += result;
	}
	result = CALL("io_getevents", syscall(SYS_io_getevents, context, submitted, DEPTH, events, NULL), NEVER);
	for (long i = 0; i < result; i++)
		requests[events[i].data].result = events[i].res;
}

/* Chooses requests that don't overlap, so that their effect doesn't depend on their order. */
static unsigned int choose_requests(struct file *file, bool direct, struct request *requests)
{
	unsigned int nr = 1 + draw(DEPTH);
	long at = draw(FILE_PAGES / 2) * PAGE;
	bool writes = chance(2);

	for (unsigned int i = 0; i < nr; i++) {
		struct request *request = &requests[i];

		*request = (struct request) { .offset = at + draw(8) * 512, .length = (1 + draw(PIECE / 512)) * 512,
					      .bytes = memory + i * PIECE, .is_write = writes };
		if (!direct && chance(2))
			request->length = 1 + draw(PIECE);
		if (request->offset + request->length > FILE_SIZE)
			return i;
		/* A read that begins beyond the end of the file has no bytes to compare. */
		if (!writes && request->offset >= (long)file->model->size)
			return i;
		if (writes)
			fill(file->tag, request->bytes, request->length);
		at = (request->offset + request->length + 2 * PAGE) & -PAGE;
	}
	return nr;
}

/* Makes a request that stock code failed again, by a direct call. Returns the call's bytes, or minus the error. */
static long again(struct file *file, const struct request *request)
{
	long result = request->is_write ? DIRECT(pwrite(file->direct, request->bytes, request->length, request->offset)) :
					  DIRECT(pread(file->direct, request->bytes, request->length, request->offset));

	return result < 0 ? -errno : result;
}

static void ended(struct file *file, struct request *request, const char *how)
{
	long due = request->length, left = (long)file->model->size - request->offset;

	if (!request->is_write && left < due)
		due = left;
	if (stock_failure(request->result, -request->result))
		request->result = again(file, request);
	if (request->result < 0) {
		violation(request->result == -EIO ? "EIO" : "error", "%s %s at %ld, %ld bytes: %s", how, request->is_write ? "write" : "read",
			  request->offset, request->length, strerror(-request->result));
		return;
	}
	if (request->is_write)
		wrote(file, request->offset, request->bytes, request->result);
	else
		check_model(file, how, request->offset, request->bytes, request->result < due ? request->result : due);
	if (request->result != due)
		violation("short", "%s %s at %ld: %ld bytes, not %ld", how, request->is_write ? "write" : "read", request->offset,
			  request->result, due);
}

void read_or_write_async(void)
{
	struct file *file = one_of_mine();
	bool direct = chance(2), uring = chance(2);
	struct request requests[DEPTH];
	unsigned int nr = choose_requests(file, direct, requests);
	int fd = direct ? file->direct : chance(4) ? file->dsync : file->fd;
	const char *how = uring ? direct ? "direct io_uring" : "io_uring" : direct ? "direct libaio" : "libaio";

	if (!nr)
		return;
	note("%s %s %s %u from %ld", how, requests[0].is_write ? "write" : "read", file->model->name, nr, requests[0].offset);
	if (uring)
		by_uring(fd, requests, nr);
	else
		by_aio(fd, requests, nr);
	for (unsigned int i = 0; i < nr; i++)
		ended(file, &requests[i], how);
}

/* Registers a mapping's pages, which pins them for long. The kernel may refuse that for files. */
void register_mapping(void)
{
	struct file *file;
	struct mapping *mapping = some_mapping(&file);
	struct iovec part;

	if (pins) {
		note("unregister");
		CALL("io_uring_unregister_buffers", (errno = -io_uring_unregister_buffers(&pinning)) ? -1 : 0, NEVER);
		pins = false;
	} else if (mapping && mapped_bytes(file, mapping)) {
		part = (struct iovec) { mapping->address, mapped_bytes(file, mapping) };
		note("register %s page %ld", file->model->name, mapping->first);
		pins = !CALL("io_uring_register_buffers", (errno = -io_uring_register_buffers(&pinning, &part, 1)) ? -1 : 0,
			     MAY(EFAULT, EOPNOTSUPP, ENOMEM, EINVAL));
	}
}

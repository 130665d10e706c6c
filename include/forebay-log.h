/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * libforebay-log: a file that grows at its end, through a mapping. forebay-log(3) is the contract.
 *
 * Where the file can be mapped with MAP_SYNC, as on forebay and on ext4 with DAX, a sync takes no system
 * call. Elsewhere it is one fdatasync(2). The promise is the same.
 *
 * Functions return -1, or NULL, with errno set if they fail. A log may be used by several threads. One
 * process at a time has a log open; a child of fork(2) must not use its parent's.
 */
#ifndef FOREBAY_LOG_H
#define FOREBAY_LOG_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct forebay_log;

/* Sizes; 0 stands for the default in brackets. @size is sizeof(struct forebay_log_options). */
struct forebay_log_options {
	size_t size;
	size_t chunk;		/* bytes, a multiple of 4096 [2 MiB]: the unit of the next two */
	unsigned int low_water;	/* chunks left when more are allocated [4] */
	unsigned int pre_alloc;	/* chunks allocated at once [8] */
};

/* Take over the file of @fd, which may be closed afterwards; cuts what a crash left. @options: or NULL. */
struct forebay_log *forebay_log_open(int fd, const struct forebay_log_options *options);

/* Append all bytes, or none. */
int forebay_log_append(struct forebay_log *log, const void *data, size_t length);
int forebay_log_appendv(struct forebay_log *log, const struct iovec *parts, int n);

/* Make durable what was appended before the call. Once this has failed, it fails always. */
int forebay_log_sync(struct forebay_log *log);

/* Where the next byte goes, in bytes from the start of the file. */
off_t forebay_log_end(struct forebay_log *log);

/* Sync, and give the file the size that its bytes have. The next append maps it again. */
int forebay_log_settle(struct forebay_log *log);

/* Settle and free; @log is gone even if this fails. */
int forebay_log_close(struct forebay_log *log);

/* Cut what a crash left behind the end of a log that is not open. Returns the size of the file. */
off_t forebay_log_recover(int fd);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif

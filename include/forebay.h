/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * libforebay: operations on a file of a forebay mount. forebay(3) is the contract.
 *
 * Functions return 0, or -1 with errno set; forebay_mmap() returns what mmap(2) does. On a file of
 * another file system they fail with ENOTTY. forebay_mmap() fails there with EOPNOTSUPP, unless that
 * file system supports MAP_SYNC, too. So a program can call them on any file, and continue after these
 * errors.
 *
 * Offsets and lengths are bytes. An operation affects all pages that the range touches. A length of 0
 * reaches to the end.
 */
#ifndef FOREBAY_H
#define FOREBAY_H

#include <linux/forebay.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* mmap(2), shared, with every flushed store durable: MAP_SHARED_VALIDATE | MAP_SYNC and @flags. */
void *forebay_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);

/* Bring a range into persistent memory and keep it there, or undo that. @flags: FOREBAY_KEEP or 0. */
int forebay_pin(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_unpin(int fd, off_t offset, off_t length, unsigned int flags);

/* Send writes to a range to persistent memory, or undo that. @flags: FOREBAY_KEEP or 0. */
int forebay_attach(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_detach(int fd, off_t offset, off_t length, unsigned int flags);

/* Write a range back and take it out of persistent memory. @result: the outcome, or NULL. */
int forebay_drop(int fd, off_t offset, off_t length, struct forebay_dropped *result);

/* Get information on a range. @flags: FOREBAY_INFO_RUN or 0. */
int forebay_range_info(int fd, off_t offset, off_t length, unsigned int flags, struct forebay_info *info);

#ifdef __cplusplus
}
#endif

#endif

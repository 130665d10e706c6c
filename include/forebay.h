/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * libforebay: what a program may ask of a file on a forebay mount. forebay(3) is the contract.
 *
 * Every function returns 0, or -1 with errno set; forebay_mmap() as mmap(2) does. On a file that is
 * not on forebay they fail with ENOTTY, and forebay_mmap() with EOPNOTSUPP unless that file system
 * knows MAP_SYNC too: so a program can call them anywhere and go on without.
 *
 * Offsets and lengths are bytes; the pages that they touch are meant. A length of 0 is up to the end.
 */
#ifndef FOREBAY_H
#define FOREBAY_H

#include <linux/forebay.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* mmap(2), shared, every flushed store durable: MAP_SHARED_VALIDATE | MAP_SYNC and @flags. */
void *forebay_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);

/* Bring a range into persistent memory and keep it there; undo that. @flags: FOREBAY_KEEP or 0. */
int forebay_pin(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_unpin(int fd, off_t offset, off_t length, unsigned int flags);

/* What is written to a range goes to persistent memory; undo that. @flags: FOREBAY_KEEP or 0. */
int forebay_attach(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_detach(int fd, off_t offset, off_t length, unsigned int flags);

/* Write a range back and take it out of persistent memory. @result: what became of it, or NULL. */
int forebay_drop(int fd, off_t offset, off_t length, struct forebay_dropped *result);

/* Look at a range. @flags: FOREBAY_INFO_RUN or 0. */
int forebay_range_info(int fd, off_t offset, off_t length, unsigned int flags, struct forebay_info *info);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which file descriptors are logs.
 *
 * A descriptor is *left* when the program does with it what a log can't. Then the file gets its size, and
 * from then on every call goes to the kernel. Its entry stays until the close, so that no second log of the
 * file begins.
 */
#ifndef FOREBAY_LIB_PRELOAD_TABLE_H
#define FOREBAY_LIB_PRELOAD_TABLE_H

#include <forebay-log.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Larger numbers are never logs. */
#define MAX_FD	65536

/* State of a claim. TAKEN: a process has the log. PLAIN: all processes write by themselves. */
enum { FREE, TAKEN, PLAIN };

struct entry {
	pthread_mutex_t mutex;
	pthread_cond_t idle;		/* users fell to 0 */
	/* Fixed while the entry is in the table: */
	int fd;
	dev_t device;
	ino_t inode;
	bool appends;			/* O_APPEND */
	bool syncs;			/* O_SYNC or O_DSYNC */
	unsigned int *claim;		/* shared with the processes that fork from this one */
	/* Under mutex: */
	pid_t process;			/* the one that this memory is of; a child of vfork(2) is another */
	bool inherited;			/* a parent made the entry */
	struct forebay_log *log;	/* NULL: left */
	bool left;			/* the file has its size; also read without mutex */
	bool claimed;			/* by this process */
	bool named;			/* an fsync() has made the file's name durable */
	int users;			/* syncs in progress; the log stays until they are done */
	off_t position;			/* as lseek(2) has it */
	struct entry *next;		/* under the table's own lock */
};

/* Set while this thread is in the library, which opens the file once more: that open is not the program's. */
extern __thread bool table_opens;

struct entry *entry_find(int fd);
int entry_add(int fd, int flags);
void entry_forget(struct entry *entry);
void entry_leave(struct entry *entry);
void entry_leave_file(struct entry *entry, const struct stat *file);
void entry_settle(struct entry *entry);
bool entry_is_of(const struct entry *entry, dev_t device, ino_t inode);
struct entry *entry_of_file(dev_t device, ino_t inode);
bool entry_end(struct entry *entry, off_t *end);
bool entry_size(dev_t device, ino_t inode, off_t *size);
bool table_is_used(void);
off_t table_recover(int fd);
struct entry *entry_of_path(int directory, const char *path, struct stat *st);
void leave_own(int fd);
void leave(int fd);

#endif

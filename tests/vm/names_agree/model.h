/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two processes change one directory tree; a model of it is in memory that both share, a file.
 *
 * The tree has TOPS folders that stay, t0, t1, ... Each has NAMES names, n0, n1, ...: a name stands for
 * nothing, a file, or a folder with NAMES names for files. A file has as many names as come about. An object
 * is recognised by its owner, which is its number.
 *
 * A process changes names, and looks at them, with the locks of the tops that they lie in. Changes in
 * different tops run side by side. Sync calls hold no lock.
 *
 * Each change takes a ticket when it begins and one when it has been made: these say of two changes whether
 * one ended before the other began. The history has both processes' changes, and what sync calls have
 * promised. By it the state after a power cut is judged.
 */
#ifndef FOREBAY_TEST_NAMES_AGREE_H
#define FOREBAY_TEST_NAMES_AGREE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PROCESSES = 2,
	TOPS = 4,
	NAMES = 8,
	OBJECTS = 1 << 20,
	FOLDERS = 1 << 17,
	OPS = 1 << 17,			/* of a process; later ones are not in the history */
	INODE_LOCKS = 64,
	MTIME = 1000000000,		/* s; an object's mtime is this plus how often it was set */
};

enum kind { NOTHING, IS_FILE, IS_FOLDER };

/* A name: which folder, by its number in the table of folders, and which of the folder's names. */
struct place {
	uint32_t folder, name;
};

struct object {
	uint8_t kind;
	uint32_t folder;		/* its number among folders; tops have the first ones */
	uint32_t links;
	uint32_t version;		/* how often its mtime was set */
	uint32_t changed[PROCESSES];	/* the last op, plus 1, that changed its names, or a folder's entries */
};

struct op {
	uint64_t begun, ended;		/* tickets; ended 0: not yet */
	uint32_t nr;			/* of names */
	struct place place[2];
	uint32_t before[2], after[2];	/* objects */
};

/* What a sync call has promised when it returned. */
struct promise {
	uint64_t ended;
	uint32_t need[PROCESSES];	/* so many first ops of each process are durable */
	uint32_t object, version;	/* the file's content is durable, and its mtime; 0: of no file */
};

struct history {
	atomic_uint nr_ops, nr_promises;
	struct op op[OPS];
	struct promise promise[OPS];
};

struct model {
	/* The first two are for the test beside: it reads, and sets. */
	atomic_ulong tickets;
	atomic_uint stop;
	atomic_uint failed, next_object, next_folder;
	pthread_mutex_t top[TOPS], inode[INODE_LOCKS], lasts;
	struct object object[OBJECTS];
	uint32_t entry[FOLDERS][NAMES], first[FOLDERS][NAMES];	/* objects: now, and when the history began */
	struct history history[PROCESSES];
};

extern struct model *model;

static inline uint64_t ticket(void)
{
	return atomic_fetch_add(&model->tickets, 1);
}

static inline uint32_t *entry_of(struct place place)
{
	return &model->entry[place.folder][place.name];
}

static inline long length_of(uint32_t object)
{
	return 1 + object * 2654435761u % 9000;
}

static inline char byte_of(uint32_t object, long at)
{
	return (char)(object + at * 7 + at / 4096 * 13) | 1;
}

/* What is in a tree, by its model's numbers. */
struct found {
	uint32_t entry[FOLDERS][NAMES];
	uint32_t version[OBJECTS];	/* plus 1; 0: mtime was not set */
	uint32_t links[OBJECTS];
	bool there[OBJECTS], whole[OBJECTS];
};

int play(int root, unsigned int me, uint64_t seed);
int check_now(int root);
int check_cut(int root, uint64_t before, uint64_t after);
int complain(const char *what, unsigned long number, unsigned long other);

#endif

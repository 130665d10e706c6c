/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device with one of our targets, through libdevmapper; and what the verbs
 * that make one have in common.
 */
#ifndef FOREBAY_TOOLS_MAPPED_H
#define FOREBAY_TOOLS_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "verb.h"

#define MAPPED_TEXT	4096

struct mapped {
	uint64_t sectors;
	int open_count;
	bool suspended;
	char status[MAPPED_TEXT];	/* what the target says, without its name */
	char table[MAPPED_TEXT];
};

/* Options of a target, as in its table line. */
struct pairs {
	char text[MAPPED_TEXT / 2];	/* " key value" ... */
	unsigned int words;
};

typedef bool (*mapped_each_fn)(void *arg, const char *name, const struct mapped *mapped);

const char *mapped_name(const char *text);
bool mapped_create(const char *name, uint64_t sectors, const char *kind, const char *parameters);
bool mapped_read(const char *name, const char *kind, struct mapped *mapped);
bool mapped_each(const char *kind, mapped_each_fn each, void *arg);
bool mapped_strange(const char *name);
int mapped_message(const char *name, const char *message);
bool mapped_idle(const char *name);
enum exit_status mapped_remove(const char *name);
bool mapped_below(const char *path, const char *what, uint64_t *sectors, dev_t *rdev);
bool pairs_add(struct pairs *pairs, const char *key, int key_len, const char *value);
bool pairs_take(const struct verb *verb, struct pairs *pairs, const char *pair);

#endif

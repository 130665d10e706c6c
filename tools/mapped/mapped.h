/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device with a target of Forebay's, through libdevmapper. query.c reads, messages and removes
 * one; create.c loads tables.
 *
 * mapped/ is what write logs and transit caches share as mapped devices, their common verbs included: set,
 * latency, flush, remove. It uses base/ and sys/. writelog/, transit/, device/ and emu/ use it.
 */
#ifndef FOREBAY_TOOLS_MAPPED_H
#define FOREBAY_TOOLS_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/kind.h"
#include "base/verb.h"

#define MAPPED_TEXT	4096

struct mapped {
	uint64_t sectors;
	int open_count;
	bool suspended;
	char status[MAPPED_TEXT];	/* the status line, without length and target */
	char table[MAPPED_TEXT];
};

typedef bool (*mapped_each_fn)(void *arg, const char *name, const struct mapped *mapped);

const char *mapped_name(const char *text);
bool mapped_read(const char *name, const struct mapped_kind *kind, struct mapped *mapped);
bool mapped_find(const char *name, const struct mapped_kind *kind, struct mapped *mapped);
bool mapped_each(const struct mapped_kind *kind, mapped_each_fn each, void *arg);
bool mapped_any(void);
bool mapped_strange(const char *name);
uint64_t mapped_value(const char *values, const char *key);
int mapped_message(const char *name, const char *message, char **answer);
bool mapped_idle(const char *name);
enum exit_status mapped_remove(const char *name);

bool mapped_may_create(const char *name);
bool mapped_create(const char *name, uint64_t sectors, const struct mapped_kind *kind,
		   const char *parameters);
enum exit_status mapped_reload(const char *name, const struct mapped_kind *kind,
			       const struct mapped *mapped);
bool mapped_below(const char *path, const char *what, uint64_t *sectors, dev_t *rdev);

#endif

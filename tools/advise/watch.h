/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes and sync calls of one file system, as the kernel's trace events tell of them: watch.c */
#ifndef FOREBAY_TOOLS_ADVISE_WATCH_H
#define FOREBAY_TOOLS_ADVISE_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct watch;

/* False: watch_read() ends, and fails. */
typedef bool (*write_fn)(void *arg, uint64_t inode, uint64_t first, uint64_t last);
typedef bool (*sync_fn)(void *arg, uint64_t inode, double seconds, int pid);

struct watch *watch_begin(const char *path, write_fn written, sync_fn synced, void *arg);
const char *watch_type(const struct watch *watch);
bool watch_read(struct watch *watch, double until, const sigset_t *signals);
double seconds_now(void);
uint64_t watch_lost(const struct watch *watch);
void watch_end(struct watch *watch);

#endif

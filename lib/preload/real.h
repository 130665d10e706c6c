/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of libc behind ours. Files of preload/ from the ground up: real, settings, others, table, claim;
 * inherit, open, write, size, old and leave stand side by side on these.
 *
 * off_t has 64 bits: open() and open64() are the same, and the like.
 */
#ifndef FOREBAY_LIB_PRELOAD_REAL_H
#define FOREBAY_LIB_PRELOAD_REAL_H

#include <dlfcn.h>
#include <sys/types.h>

_Static_assert(sizeof(off_t) == 8, "the preload is for 64-bit systems");

/* A function of libc; two threads that race find the same one. */
#define REAL(name) ({								\
	static __typeof__(name) *real_##name;					\
	if (!real_##name)							\
		real_##name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);	\
	real_##name;								\
})

/* A function that the program calls instead of libc's. */
#define CALL	__attribute__((visibility("default")))

/* The same function under another name; stands behind the declaration. */
#define SAME_AS(name) \
	__attribute__ \
	((alias(name)))

#endif

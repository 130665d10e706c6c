/* SPDX-License-Identifier: GPL-2.0-only */
/* A file that other processes change, as this process uses it: others.c, trespass.c. */
#ifndef OTHERS_H
#define OTHERS_H

#include "fuzz.h"

struct other {
	int fd, direct;
	bool shared, foreign;	/* every process may write it; it is another user's */
	uint8_t tag;
	char name[16], path[256];
	char *map;
	long first, pages;
	bool writable, private;
};

struct other *some_other(void);
void press_on(void);
void trespass(void);

#endif

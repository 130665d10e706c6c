// SPDX-License-Identifier: GPL-2.0-only
/* telldir DIRECTORY: positions of a directory stay good while it is read, and after. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST	2000

int main(int argc, char **argv)
{
	static char names[MOST][256];
	static long positions[MOST];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	if (argc != 2 || !(dir = opendir(argv[1])))
		return 2;
	for (;;) {
		positions[n] = telldir(dir);
		entry = readdir(dir);
		if (!entry || n == MOST - 1)
			break;
		strcpy(names[n++], entry->d_name);
	}
	for (int i = 0; i < 300; i++) {
		int k = rand() % n;

		seekdir(dir, positions[k]);
		entry = readdir(dir);
		if (!entry || strcmp(entry->d_name, names[k])) {
			fprintf(stderr, "position %ld: %s, not %s\n", positions[k], entry ? entry->d_name : "the end",
				names[k]);
			return 1;
		}
	}
	/* Half of the names go; the others are still where they were. */
	for (int i = 0; i < n; i += 2) {
		char path[8192];

		snprintf(path, sizeof(path), "%.4000s/%.255s", argv[1], names[i]);
		if (names[i][0] != '.')
			unlink(path);
	}
	for (int i = 1; i < n; i += 50) {
		seekdir(dir, positions[i]);
		entry = readdir(dir);
		if (names[i][0] != '.' && (!entry || strcmp(entry->d_name, names[i]))) {
			fprintf(stderr, "after unlink: %s, not %s\n", entry ? entry->d_name : "the end", names[i]);
			return 1;
		}
	}
	rewinddir(dir);
	n = 0;
	while (readdir(dir))
		n++;
	printf("%d names left\n", n);
	closedir(dir);
	return 0;
}

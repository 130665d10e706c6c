// SPDX-License-Identifier: GPL-2.0-only
/*
 * Works as an ordinary PMDK program, until the power goes. The next boot looks for all data that the
 * program was told are durable.
 *
 *	load persist FILE ACKNOWLEDGED	libpmem: records at random in a sparse file, each made durable by pmem_persist()
 *	load pool FILE ACKNOWLEDGED	libpmemobj: transactions on two objects that must be equal, and a list that grows
 *
 * First checks that everything up to ACKNOWLEDGED is there (0: makes the file), and prints "found N". Then
 * goes on, and prints "ack N" when N is durable. No sync call is made after the file is there.
 */
#include <libpmem.h>
#include <libpmemobj.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES	(24UL << 20)
#define RECORDS		(FILE_BYTES / 4096)	/* one a page, so that most stores meet a hole */
#define POOL_BYTES	(16UL << 20)

static void say(const char *what, uint64_t n)
{
	printf("%s %llu\n", what, (unsigned long long)n);
	fflush(stdout);
}

static int fail(const char *what, uint64_t n)
{
	printf("failed: %s %llu\n", what, (unsigned long long)n);
	return 1;
}

/* Record @n is in this page, at an offset of its own. */
static size_t place(uint64_t n)
{
	uint64_t x = n * 0x9e3779b97f4a7c15ULL;

	return (x >> 32) % RECORDS * 4096 + (x % 60) * 64;
}

static int persist(const char *path, uint64_t acknowledged)
{
	uint64_t n, record[2];
	size_t length;
	char *map;
	int is_pmem;

	map = pmem_map_file(path, acknowledged ? 0 : FILE_BYTES, acknowledged ? 0 : PMEM_FILE_CREATE | PMEM_FILE_SPARSE,
			    0600, &length, &is_pmem);
	if (!map || length != FILE_BYTES)
		return fail(pmem_errormsg(), 0);
	if (!is_pmem)
		return fail("is_pmem is not set", 0);
	/* A later record may have been written to the same place, which then has either record. */
	for (n = 1; n <= acknowledged; n++) {
		memcpy(record, map + place(n), sizeof(record));
		if (record[0] < n || place(record[0]) != place(n) || record[1] != ~record[0])
			return fail("not there: record", n);
	}
	say("found", acknowledged);
	for (n = acknowledged + 1;; n++) {
		record[0] = n;
		record[1] = ~n;
		memcpy(map + place(n), record, sizeof(record));
		pmem_persist(map + place(n), sizeof(record));
		say("ack", n);
	}
}

struct node {
	PMEMoid next;
	uint64_t number;
	char filler[2000];
};

struct root {
	uint64_t first;
	char apart[8192];
	uint64_t second;
	PMEMoid list;
};

static int check_pool(struct root *root, uint64_t acknowledged)
{
	uint64_t expected = root->first;
	PMEMoid oid;

	if (root->first != root->second)
		return fail("a transaction is there in half:", root->first);
	if (root->first < acknowledged)
		return fail("transactions are lost: only", root->first);
	for (oid = root->list; !OID_IS_NULL(oid); expected--) {
		struct node *node = pmemobj_direct(oid);

		if (node->number != expected)
			return fail("the list is broken at", expected);
		oid = node->next;
	}
	/* Old nodes are freed: the list has the last thousand or so. */
	return root->first > 1000 && root->first - expected < 900 ? fail("the list is too short:", expected) : 0;
}

static int transact(PMEMobjpool *pool, struct root *root)
{
	PMEMoid root_oid = pmemobj_root(pool, sizeof(*root));

	TX_BEGIN(pool) {
		PMEMoid oid = pmemobj_tx_alloc(sizeof(struct node), 1);
		struct node *node = pmemobj_direct(oid);

		pmemobj_tx_add_range(root_oid, 0, sizeof(*root));
		node->number = root->first + 1;
		node->next = root->list;
		memset(node->filler, (int)node->number, sizeof(node->filler));
		root->list = oid;
		root->first++;
		root->second++;
		if (root->first % 1000 == 0) {		/* keep a thousand */
			PMEMoid at = root->list, next;

			for (int i = 0; i < 999 && !OID_IS_NULL(at); i++)
				at = ((struct node *)pmemobj_direct(at))->next;
			if (!OID_IS_NULL(at)) {
				node = pmemobj_direct(at);
				pmemobj_tx_add_range_direct(&node->next, sizeof(node->next));
				next = node->next;
				node->next = OID_NULL;
				for (; !OID_IS_NULL(next); next = at) {
					at = ((struct node *)pmemobj_direct(next))->next;
					pmemobj_tx_free(next);
				}
			}
		}
	} TX_ONABORT {
		return -1;
	} TX_END
	return 0;
}

/* libpmemobj asks its own libpmem2 and doesn't pass the answer on: smaps shows whether it got MAP_SYNC. */
static bool mapped_sync(const char *path)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	bool ours = false, sync = false;
	char line[4096];

	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, path))
			ours = true;
		else if (!strncmp(line, "VmFlags:", 8)) {
			sync = sync || (ours && strstr(line, " sf"));
			ours = false;
		}
	}
	fclose(maps);
	return sync;
}

static int pool(const char *path, uint64_t acknowledged)
{
	PMEMobjpool *pool = acknowledged ? pmemobj_open(path, "powercut") : pmemobj_create(path, "powercut", POOL_BYTES, 0600);
	struct root *root;

	if (!pool)
		return fail(pmemobj_errormsg(), 0);
	root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
	if (!mapped_sync(path))
		return fail("libpmemobj has not mapped it as persistent memory", 0);
	if (check_pool(root, acknowledged))
		return 1;
	say("found", root->first);
	for (;;) {
		if (transact(pool, root))
			return fail("aborted", root->first);
		say("ack", root->first);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	if (!strcmp(argv[1], "persist"))
		return persist(argv[2], strtoull(argv[3], NULL, 0));
	return pool(argv[2], strtoull(argv[3], NULL, 0));
}

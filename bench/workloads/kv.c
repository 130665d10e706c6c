// SPDX-License-Identifier: GPL-2.0-only
/*
 * A key-value store in a folder, volatile or persistent. Stands in for pmemkv's engines, which Debian
 * doesn't package (PMDK thesis 5.2, figures 11 to 14).
 *
 *	kv FOLDER hash|tree volatile|persistent VALUE KEYS SECONDS
 *
 * hash: buckets of chains; tree: a binary tree, which stays flat as keys come in random order. The same
 * code serves both kinds: volatile allocates with memkind from a mapping of a file of the folder,
 * persistent with libpmemobj from a pool there, in a transaction for each put. So the cost of persistence
 * is all that differs.
 *
 * Puts KEYS keys of 16 bytes, each once, or as many as SECONDS allow, at least LEAST. A persistent pool is
 * closed and opened again then. Gets twice as many at random, each copied out and compared at both ends.
 * At last each key must be there, with its whole value, and no other. Prints what the store is on (HEAP,
 * PMEM, or MSYNC where a pool is on no persistent memory), the puts and their nanoseconds, the gets and
 * their nanoseconds. The first fault of each page is in none of these times.
 */
#define _GNU_SOURCE
#include <libpmemobj.h>
#include <memkind.h>
#include "driver.h"

enum { KEY = 16, LEAST = 50, BUCKETS = 1 << 15, HEADROOM = 64 << 20 };

typedef uint64_t ref;		/* persistent: an offset in the pool, else an address; 0: none */

struct node {
	ref next[2];		/* in a chain the first; in a tree the smaller and the greater ones */
	char key[KEY];
	char value[];
};

struct root {
	ref first[BUCKETS];	/* of the tree the first one only */
};

static int persistent, hashed;
static size_t value_size;
static PMEMobjpool *pool;
static struct memkind *kind;
static char *base;		/* of the pool */
static char *buffer;

static void *at(ref of)
{
	return persistent ? base + of : (void *)of;
}

static ref allocate(size_t size)
{
	ref of = persistent ? pmemobj_tx_alloc(size, 1).off : (ref)memkind_malloc(kind, size);

	if (!of)
		errx(1, "no memory for %zu bytes: %s", size, pmemobj_errormsg());
	return of;
}

/* A reference that is in use already is changed. */
static void set(ref *where, ref to)
{
	if (persistent && pmemobj_tx_add_range_direct(where, sizeof(*where)))
		errx(1, "%s", pmemobj_errormsg());
	*where = to;
}

static void make_key(char *key, uint64_t number)
{
	char text[KEY + 1];

	snprintf(text, sizeof(text), "%016llx", number * 0x9e3779b97f4a7c15ULL);
	memcpy(key, text, KEY);
}

static uint32_t hash(const char *key)
{
	uint64_t halves[2];

	memcpy(halves, key, KEY);
	return (halves[0] * 0x9e3779b97f4a7c15ULL ^ halves[1] * 0xc2b2ae3d27d4eb4fULL) >> 32;
}

/* Where the key's node is referred to, or would be. */
static ref *find(struct root *root, const char *key)
{
	ref *where = &root->first[hashed ? hash(key) % BUCKETS : 0];
	int order;

	while (*where) {
		struct node *node = at(*where);

		order = memcmp(key, node->key, KEY);
		if (!order)
			break;
		where = &node->next[!hashed && order > 0];
	}
	return where;
}

static void fill_value(char *value, uint64_t number)
{
	memset(value, (int)number, value_size);
	memcpy(value, &number, sizeof(number));
}

static void put(struct root *root, uint64_t number)
{
	char key[KEY];
	ref *where;
	ref made;

	make_key(key, number);
	where = find(root, key);
	if (*where)
		errx(1, "key %ju is there already", number);
	if (persistent && pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE))
		errx(1, "%s", pmemobj_errormsg());
	made = allocate(sizeof(struct node) + value_size);
	struct node *node = at(made);

	node->next[0] = node->next[1] = 0;
	memcpy(node->key, key, KEY);
	memcpy(node->value, buffer, value_size);
	set(where, made);
	if (persistent) {
		pmemobj_tx_commit();
		if (pmemobj_tx_end())
			errx(1, "%s", pmemobj_errormsg());
	}
}

static void get(struct root *root, uint64_t number)
{
	char key[KEY];
	ref where;

	make_key(key, number);
	where = *find(root, key);
	if (!where)
		errx(1, "key %ju is not there", number);
	memcpy(buffer, ((struct node *)at(where))->value, value_size);
	if (memcmp(buffer, &number, sizeof(number)) || buffer[value_size - 1] != (char)number)
		errx(1, "key %ju has another value", number);
}

static uint64_t count(ref of)
{
	struct node *node = of ? at(of) : NULL;

	return node ? 1 + count(node->next[0]) + count(node->next[1]) : 0;
}

static void check(struct root *root, uint64_t keys)
{
	char *must = malloc(value_size);
	uint64_t found = 0;

	for (uint64_t number = 0; number < keys; number++) {
		fill_value(must, number);
		get(root, number);
		if (memcmp(buffer, must, value_size))
			errx(1, "key %ju has another value within", number);
	}
	for (int bucket = 0; bucket < BUCKETS; bucket++)
		found += count(root->first[bucket]);
	if (found != keys)
		errx(1, "%ju keys, not %ju", found, keys);
}

static struct root *open_pool(const char *path, size_t size)
{
	int prefault = 1;
	PMEMoid root;

	if (pmemobj_ctl_set(NULL, "prefault.at_create", &prefault) ||
	    pmemobj_ctl_set(NULL, "prefault.at_open", &prefault))
		errx(1, "%s", pmemobj_errormsg());
	pool = size ? pmemobj_create(path, "kv", size, 0600) : pmemobj_open(path, "kv");
	if (!pool)
		errx(1, "%s: %s", path, pmemobj_errormsg());
	base = (char *)pool;
	root = pmemobj_root(pool, sizeof(struct root));
	if (OID_IS_NULL(root))
		errx(1, "%s", pmemobj_errormsg());
	return pmemobj_direct(root);
}

/* memkind's own file is not used: memkind maps it piece by piece, without MAP_SYNC. */
static struct root *open_heap(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600), failed;
	struct root *root;
	const char *how;
	char *map;

	if (fd < 0)
		err(1, "%s", path);
	failed = posix_fallocate(fd, 0, size);
	if (failed)
		errx(1, "%s: %s", path, strerror(failed));
	map = map_file(fd, size, &how);
	memset(map, 0, size);
	failed = memkind_create_fixed(map, size, &kind);
	if (failed)
		errx(1, "memkind: error %d", failed);
	root = memkind_calloc(kind, 1, sizeof(*root));
	if (!root)
		errx(1, "memkind_calloc");
	return root;
}

/* Returns how many keys there are then. */
static uint64_t put_keys(struct root *root, uint64_t keys, double seconds, long long *took)
{
	uint64_t puts = 0;
	long long begin;

	for (*took = 0; puts < keys && (puts < LEAST || *took < seconds * 1e9); puts++) {
		fill_value(buffer, puts);
		begin = now();
		put(root, puts);
		*took += now() - begin;
	}
	return puts;
}

static long long get_keys(struct root *root, uint64_t keys, uint64_t gets)
{
	long long begin = now();

	while (gets--)
		get(root, draw(keys));
	return now() - begin;
}

/*
 * Whether that address is in a mapping with MAP_SYNC ("sf"): that is what libpmemobj takes for PMem.
 * libpmem doesn't know libpmemobj's mappings.
 */
static int is_synchronous(void *address)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	char line[4096];
	int inside = 0, found = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (uintptr_t)address >= from && (uintptr_t)address < to;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, " sf") != NULL;
	}
	fclose(file);
	return found;
}

int main(int argc, char **argv)
{
	const char *where = "HEAP";
	long long put_ns, get_ns;
	uint64_t keys, puts;
	struct root *root;
	char path[4096];
	size_t size;

	if (argc != 7)
		errx(2, "usage: kv FOLDER hash|tree volatile|persistent VALUE KEYS SECONDS");
	hashed = *argv[2] == 'h';
	persistent = *argv[3] == 'p';
	value_size = strtoul(argv[4], NULL, 0);
	keys = strtoul(argv[5], NULL, 0);
	snprintf(path, sizeof(path), "%s/pool", argv[1]);
	size = HEADROOM + 3 * keys * (value_size + 256);
	buffer = malloc(value_size);
	root = persistent ? open_pool(path, size) : open_heap(path, size);
	puts = put_keys(root, keys, atof(argv[6]), &put_ns);
	if (persistent) {
		pmemobj_close(pool);
		root = open_pool(path, 0);
	}
	get_ns = get_keys(root, puts, 2 * puts);
	check(root, puts);
	if (persistent)
		where = is_synchronous(root) ? "PMEM" : "MSYNC";
	printf("%s %ju %lld %ju %lld\n", where, puts, put_ns, 2 * puts, get_ns);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* The fuzzer's parts and what they share; main.c tells what it does. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE		4096L
#define FILE_PAGES	96L		/* no file is longer */
#define FILE_SIZE	(FILE_PAGES * PAGE)
#define PROCESSES	6		/* of users */
#define OWN_FILES	2		/* of each */
#define SHARED_FILES	2		/* every process may write them */
#define USER_A		1234
#define USER_B		1235
#define HISTORY		48
#define MAPPINGS	8
#define PIPES		4
#ifndef MAP_SYNC
#define MAP_SYNC	0x80000
#endif

/*
 * A written byte is TAG << 4 | 1..15. Each process has one tag for its files, and each shared file has one.
 * A zero is a hole; a byte with another tag than its file's is foreign.
 */
#define TAG_OF_PROCESS(n)	((n) + 1)
#define TAG_OF_SHARED(n)	(PROCESSES + 1 + (n))

/* What a file of one process must hold. A model lies in a file of STATE, which outlives the run. */
struct model {
	char name[16];
	uint64_t size;
	bool exists;
	uint8_t bytes[FILE_SIZE];
};

struct past {
	char text[104];
};

/* The state of each user's process and of root's, shared with the parent, which watches them. */
struct actor {
	pid_t pid;
	int number;		/* PROCESSES: root */
	uid_t uid;
	char call[40];		/* under way, or "" */
	uint64_t since;		/* ns */
	bool told;		/* the slow call has been reported */
	uint64_t operations;
	unsigned int past;
	struct past history[HISTORY];
};

struct shared {
	volatile bool over;
	bool collide;		/* shared files get direct writes and stores to mappings at once: others.c */
	unsigned int violations;
	struct actor actor[PROCESSES + 1];
	uint64_t own_counts[64], other_counts[32], root_counts[16];	/* how often each operation ran */
};

extern struct shared *shared;
extern struct actor *me;
extern struct model *models[PROCESSES][OWN_FILES];
extern const char *mount_point;
extern bool selftest, plain;
extern bool may_have_collided;	/* EIO is allowed in this operation: others.c */
extern unsigned int slow;	/* factor for the time that a call may take */

struct mapping {
	char *address;
	long pages, first;	/* pages; first is of the file */
	bool writable, sync;
};

/* One file as this process uses it. */
struct file {
	struct model *model;	/* NULL: other processes change it, too */
	uint8_t tag;
	char path[256];
	int fd, direct, dsync;
	struct mapping mapping[MAPPINGS];
};

struct operation {
	const char *name;
	void (*run)(void);
	unsigned int weight;
};

/* main.c */
uint64_t now(void);
uint64_t draw(uint64_t below);
bool chance(unsigned int one_in);

/* report.c: a process's history, and violations */
#define MOST_TOLD	40	/* violations that are printed, in all */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void call(const char *name);
void tell_history(const struct actor *actor);
void violation(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
long expect(const char *what, long result, const int *allowed);
#define MAY(...)	((const int[]) { __VA_ARGS__, 0 })
#define NEVER		((const int[]) { 0 })
/* Makes a system call under the watchdog's clock, and checks its result: see expect(). */
#define CALL(what, expression, allowed)	(call(what), expect(what, (long)(expression), allowed))
/*
 * Makes a direct call. On a lower file system alone (plain), xfs fails one with EIO where it meets a delayed allocation,
 * and io_uring passes a full queue's EAGAIN on: both are stock behaviour, and the call is made again.
 */
bool stock_failure(long result, int error);
#define DIRECT(expression) ({								\
	long _result;									\
	unsigned int _tries = 0;							\
											\
	do										\
		_result = (expression);							\
	while (stock_failure(_result, errno) && ++_tries < 1000);			\
	_result; })

/* hang.c: calls that take too long */
#define PATIENCE	10	/* seconds, for one call */

void watch(void);

/* check.c: what bytes must be */
void check_model(struct file *file, const char *how, long offset, const void *bytes, long length);
void check_tags(uint32_t tags, const char *name, const char *how, long offset, const void *bytes, long length);
void fill(uint8_t tag, void *bytes, long length);
bool copy_guarded(void *to, const void *from, long length);
bool touch_guarded(volatile char *at);
void *arena(long length);
void begin_guard(void);

/* own.c: files of this process alone */
extern struct file own[OWN_FILES];
extern const struct operation own_operations[];
struct file *one_of_mine(void);
void choose(long limit, long most, long *offset, long *length);
void wrote(struct file *file, long offset, const void *bytes, long length);
void became_zero(struct file *file, long offset, long length);
void set_path(struct file *file, const char *name);
void reopen_file(struct file *file);
void begin_own(int number);
void end_own(void);

/* io.c: reads, writes, syncs of own files */
void write_some(void);
void append(void);
void write_direct(void);
void write_synced(void);
void read_some(void);
void read_direct(void);
void read_whole(void);
void write_from_mapping(void);
void read_into_mapping(void);
void sync_some(void);
void advise(void);
void look_at_size(void);
void seek(void);
void map_extents(void);

/* claims.c: Forebay's calls on own files */
void claim(void);
void drop(void);
void claim_nonsense(void);

/* change.c: sizes, holes, names of own files */
void resize(void);
void allocate(void);
void shift(void);
void copy(void);
void give_other_names(void);
void replace(void);
void replace_by_nameless(void);
void set_attributes(void);

/* mapped.c: mappings of own files */
void map_some(void);
void unmap_some(void);
void store(void);
void load(void);
void sync_mapping(void);
void advise_mapping(void);
void move_mapping(void);
void protect_mapping(void);
void lock_mapping(void);
void map_privately(void);
void reach_by_proc(void);
void fork_with_mappings(void);
void wait_on_futex(void);
struct mapping *some_mapping(struct file **file);
struct mapping *mapping_of(struct file *file);
long mapped_bytes(const struct file *file, const struct mapping *mapping);
void unmap_all(struct file *file);

/* pipes.c: pages that pipes hold */
void hold_memory(const void *from, long length, uint32_t tags, const char *name);
void hold_file(int fd, long offset, long length, uint32_t tags, const char *name);
void hold_some(void);
void release_some(void);
void release_all(void);
void write_by_pipe(void);
void send_to_mine(void);

/* async.c: libaio and io_uring */
void begin_async(void);
void read_or_write_async(void);
void register_mapping(void);

/* others.c: files of other processes, and files that every process may write; root.c */
extern const struct operation other_operations[];
void make_shared_files(void);
void begin_others(void);
void end_others(void);
extern const struct operation root_operations[];
void begin_root(void);

#endif

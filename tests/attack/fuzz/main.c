// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz: processes of two users use their own files and each other's, in every way that the kernel has.
 * A process of root's drains, remounts, freezes and takes memory meanwhile.
 *
 *	fuzz run MOUNT STATE SECONDS SEED [without=OPERATION,...] [only=OPERATION,...] [slow=N] [plain] [selftest]
 *	fuzz verify FOLDER STATE
 *
 * plain: on a lower file system alone, without MAP_SYNC; what stock code fails is made again (DIRECT in fuzz.h).
 * selftest: the program changes a byte without the model, to test its checks.
 *
 * What must hold:
 *   - A process that alone writes a file knows each byte of the file: struct model, in STATE, a folder in
 *     memory. Every way of reading shows these bytes. `verify` compares the lower files with the models
 *     after unmount. A second `run` goes on with the files of the first.
 *   - Every other process reads zeros or bytes with the owner's tag from that file, never another tag.
 *   - An operation returns only the errors that its line in the source allows.
 *   - No access to a mapping inside the file gets SIGBUS.
 *   - What a user has no permission for fails.
 *   - No call takes longer than 10 s (times `slow`). If one does, the stack of each process is printed.
 * A violation is a line "VIOLATION kind: ..." on standard error, followed by the process's last operations.
 * The model then takes over the bytes that were read, the run goes on, and the program ends with status 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

struct shared *shared;
struct actor *me;
struct model *models[PROCESSES][OWN_FILES];
const char *mount_point;
bool selftest, plain, may_have_collided;
unsigned int slow = 1;

static const char *without = "", *only = "";
static uint64_t random_state;

uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

bool chance(unsigned int one_in)
{
	return !draw(one_in);
}

static struct model *load_model(const char *state, int process, int file)
{
	struct model *model;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/model-%d%c", state, process, 'a' + file);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*model))) {
		perror(path);
		exit(2);
	}
	model = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (model == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return model;
}

static void load_models(const char *state)
{
	for (int process = 0; process < PROCESSES; process++)
		for (int file = 0; file < OWN_FILES; file++)
			models[process][file] = load_model(state, process, file);
}

static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static unsigned int weight_of(const struct operation *operation)
{
	if (is_listed(without, operation->name) || (*only && !is_listed(only, operation->name)))
		return 0;
	return operation->weight;
}

static void run_one(const struct operation *operations, uint64_t *counts)
{
	unsigned int all = 0, at;

	for (int i = 0; operations[i].name; i++)
		all += weight_of(&operations[i]);
	if (!all)
		return;
	at = draw(all);
	for (int i = 0; operations[i].name; i++) {
		unsigned int weight = weight_of(&operations[i]);

		if (at < weight) {
			may_have_collided = shared->collide && me->number == PROCESSES;
			operations[i].run();
			__sync_add_and_fetch(&counts[i], 1);
			me->operations++;
			call("");
			return;
		}
		at -= weight;
	}
}

static void become(uid_t user)
{
	struct rlimit files = { 1024, 1024 };

	setrlimit(RLIMIT_NOFILE, &files);
	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user)) {
		perror("setuid");
		exit(2);
	}
	/* Without this, root would own /proc/self/mem. */
	prctl(PR_SET_DUMPABLE, 1);
}

/* Root's operations run beside the users', with pauses. */
static int run_root(void)
{
	begin_root();
	while (!shared->over) {
		usleep(draw(200000));
		run_one(root_operations, shared->root_counts);
	}
	return 0;
}

static int run_user(int number)
{
	become(me->uid);
	begin_guard();
	begin_async();
	begin_own(number);
	begin_others();
	while (!shared->over) {
		if (draw(10) < 7)
			run_one(own_operations, shared->own_counts);
		else
			run_one(other_operations, shared->other_counts);
	}
	release_all();
	end_others();
	end_own();
	return 0;
}

static void start(int number, uint64_t seed)
{
	struct actor *actor = &shared->actor[number];
	pid_t pid;

	pid = fork();
	if (pid) {
		actor->pid = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	me = actor;
	random_state = (seed + 1) * 0x9E3779B97F4A7C15ULL ^ (number + 1) * 0xBF58476D1CE4E5B9ULL;
	for (int i = 0; i < 8; i++)
		draw(2);
	_exit(number == PROCESSES ? run_root() : run_user(number));
}

/* Reaps the children that have ended; returns how many still run. */
static int reap(void)
{
	int status, left = 0;

	for (int i = 0; i <= PROCESSES; i++) {
		struct actor *actor = &shared->actor[i];

		if (!actor->pid)
			continue;
		if (waitpid(actor->pid, &status, WNOHANG) != actor->pid) {
			left++;
			continue;
		}
		if (status || !shared->over) {
			me = actor;
			violation("end", "ended with %s %d during %s", WIFSIGNALED(status) ? "signal" : "status",
				  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), actor->call);
			me = NULL;
		}
		actor->pid = 0;
		actor->call[0] = 0;
	}
	return left;
}

static void tell_counts(const struct operation *operations, const uint64_t *counts)
{
	for (int i = 0; operations[i].name; i++)
		fprintf(stderr, " %s %llu", operations[i].name, (unsigned long long)counts[i]);
	fprintf(stderr, "\n");
}

static int run(double seconds, uint64_t seed)
{
	uint64_t until = now() + seconds * 1e9, operations = 0;

	shared->collide = seed / 4 & 1;	/* test_fuzz.py chooses the cache by the last two bits */
	make_shared_files();

	/* All uids are set before a child starts: each looks up which files are another user's. */
	for (int i = 0; i <= PROCESSES; i++)
		shared->actor[i] = (struct actor){ .number = i, .uid = i == PROCESSES ? 0 : i % 2 ? USER_B : USER_A };
	for (int i = 0; i <= PROCESSES; i++)
		start(i, seed);
	while (now() < until && reap() == PROCESSES + 1) {
		watch();
		usleep(200000);
	}
	shared->over = true;
	until = now() + 60 * slow * 1000000000ULL;
	while (reap() && now() < until) {
		watch();
		usleep(50000);
	}
	for (int i = 0; i <= PROCESSES; i++) {
		operations += shared->actor[i].operations;
		if (shared->actor[i].pid)
			kill(shared->actor[i].pid, SIGKILL);
	}
	until = now() + PATIENCE * slow * 1000000000ULL;
	while (reap() && now() < until)
		usleep(50000);
	if (reap())
		fprintf(stderr, "VIOLATION stuck: not even killed do all end\n");
	fprintf(stderr, "%llu operations, %u violations;", (unsigned long long)operations, shared->violations);
	tell_counts(own_operations, shared->own_counts);
	tell_counts(other_operations, shared->other_counts);
	tell_counts(root_operations, shared->root_counts);
	return !!shared->violations;
}

/* Reads by a mapping: xfs holds the inode's lock while read(2) copies (tests/vm/stack.py: read_below()). */
static ssize_t read_mapped(int fd, void *to, size_t length)
{
	struct stat stat;
	void *map;

	if (fstat(fd, &stat))
		return -1;
	if ((size_t)stat.st_size < length)
		length = stat.st_size;
	if (!length)
		return 0;
	map = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -1;
	memcpy(to, map, length);
	munmap(map, length);
	return length;
}

/* Compares one lower file with its model. */
static void verify_file(const char *folder, const struct model *model)
{
	static uint8_t bytes[FILE_SIZE + 1];
	char path[300];
	ssize_t got;
	int fd;

	if (!model->exists)
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, model->name);
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		violation("below", "%s: %s", path, strerror(errno));
		return;
	}
	got = read_mapped(fd, bytes, sizeof(bytes));
	close(fd);
	if (got != (ssize_t)model->size)
		violation("below", "%s: %zd bytes, not %llu", path, got, (unsigned long long)model->size);
	for (ssize_t i = 0; i < got && i < (ssize_t)model->size; i++) {
		if (bytes[i] != model->bytes[i]) {
			violation("below", "%s: byte %zd (page %zd): %02x, not %02x", path, i, i / PAGE, bytes[i], model->bytes[i]);
			break;
		}
	}
}

static void parse(int argc, char **argv)
{
	for (; argc; argc--, argv++) {
		if (!strncmp(*argv, "without=", 8))
			without = *argv + 8;
		else if (!strncmp(*argv, "only=", 5))
			only = *argv + 5;
		else if (!strncmp(*argv, "slow=", 5))
			slow = atoi(*argv + 5);
		else if (!strcmp(*argv, "selftest"))
			selftest = true;
		else if (!strcmp(*argv, "plain"))
			plain = true;
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	if (argc < 4 || (strcmp(argv[1], "run") && strcmp(argv[1], "verify")))
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	setvbuf(stderr, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	umask(0);
	load_models(argv[3]);
	if (!strcmp(argv[1], "verify")) {
		for (int process = 0; process < PROCESSES; process++)
			for (int file = 0; file < OWN_FILES; file++)
				verify_file(argv[2], models[process][file]);
		return !!shared->violations;
	}
	if (argc < 6)
		return 2;
	mount_point = argv[2];
	parse(argc - 6, argv + 6);
	return run(atof(argv[4]), strtoull(argv[5], NULL, 0));
}

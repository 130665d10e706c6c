// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz: processes of two users use their own files and each other's, in every way that the kernel has.
 * A process of root's drains, remounts, freezes and takes memory meanwhile.
 *
 *	fuzz run MOUNT STATE SECONDS SEED [without=OPERATION,...] [only=OPERATION,...] [slow=N] [plain] [selftest]
 *	fuzz verify FOLDER STATE
 *
 * plain: without MAP_SYNC. selftest: the program changes a byte without the model, to test its checks.
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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
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

#define PATIENCE	10		/* seconds, for one call */
#define MOST_TOLD	40		/* violations, in all */

struct shared *shared;
struct actor *me;
struct model *models[PROCESSES][OWN_FILES];
const char *mount_point;
bool selftest, plain;
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

/* Records the operation that begins now in the process's history. */
void note(const char *format, ...)
{
	struct past *past = &me->history[me->past++ % HISTORY];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(past->text, sizeof(past->text), format, arguments);
	va_end(arguments);
}

/* Marks the begin of a system call, and with "" its end. */
void call(const char *name)
{
	me->since = now();
	snprintf(me->call, sizeof(me->call), "%s", name);
	me->told = false;
}

static void tell_history(const struct actor *actor)
{
	unsigned int from = actor->past > HISTORY ? actor->past - HISTORY : 0;

	for (; from < actor->past; from++)
		fprintf(stderr, "    %d: %.*s\n", actor->number, (int)sizeof(struct past), actor->history[from % HISTORY].text);
}

void violation(const char *kind, const char *format, ...)
{
	unsigned int nr = __sync_add_and_fetch(&shared->violations, 1);
	char text[400];
	va_list arguments;

	if (nr > MOST_TOLD)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "VIOLATION %s: process %d (pid %d, uid %d), operation %llu: %s\n", kind, me ? me->number : -1, getpid(), getuid(),
		me ? (unsigned long long)me->operations : 0, text);
	if (me)
		tell_history(me);
}

/* Ends a system call and checks its result: any error that is not allowed is a violation. */
long expect(const char *what, long result, const int *allowed)
{
	int error = errno;

	call("");
	if (result >= 0)
		return result;
	for (; *allowed; allowed++)
		if (error == *allowed)
			return -error;
	violation(error == EIO ? "EIO" : "error", "%s: %s", what, strerror(error));
	return -error;
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

static void tell_file(const char *path)
{
	char buffer[8192];
	int fd = open(path, O_RDONLY);
	ssize_t got = fd < 0 ? 0 : read(fd, buffer, sizeof(buffer) - 1);

	if (got > 0)
		fprintf(stderr, "  %s:\n%.*s", path, (int)got, buffer);
	if (fd >= 0)
		close(fd);
}

static void tell_kernel(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "  %s, '%s': %s\n", path, text, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* Traces for a moment what functions of faults and syncs return: a task that loops there shows no stack. */
static void tell_loop(void)
{
	static const char *const functions[] = {
		"fb_fault", "fb_page_mkwrite", "fb_pfn_mkwrite", "fb_store_dax", "fb_store_page", "fb_space_for_store",
		"fb_fault_sync", "fb_fault_dax", "fb_fault_lower", "fb_prepare_folio", "fb_promote_page", "fb_move_in",
		"fb_sync_inode", "fb_sync_below", "fb_sync_size", "fb_wait_for_space", "fb_range_lock", "fb_read_some",
		"ext4_page_mkwrite", "filemap_fault", "block_page_mkwrite", "fixup_user_fault", "fb_pages_invalidate",
	};
	char text[128];

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		snprintf(text, sizeof(text), "r:loop/%s %s result=$retval:s32", functions[i], functions[i]);
		tell_kernel("/sys/kernel/tracing/kprobe_events", text);
	}
	tell_kernel("/sys/kernel/tracing/events/loop/enable", "1");	/* one after the other, in a second or two */
	close(open("/sys/kernel/tracing/trace", O_WRONLY | O_TRUNC));
	usleep(100000);
	tell_kernel("/sys/kernel/tracing/events/loop/enable", "0");
	tell_file("/sys/kernel/tracing/trace");
}

/*
 * Prints the counts of timer and inter-processor interrupts. A processor whose counts stand still has lost
 * an interrupt, or runs with interrupts off.
 */
static void tell_interrupts(void)
{
	char line[256];
	FILE *file = fopen("/proc/interrupts", "r");

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "LOC:") || strstr(line, "RES:") || strstr(line, "CAL:"))
			fprintf(stderr, "  %s", line);
	if (file)
		fclose(file);
}

/* Prints every task that is running, runnable or in uninterruptible sleep, kernel threads included. */
static void tell_tasks(void)
{
	char path[300], line[512], state;
	struct dirent *entry;
	DIR *all = opendir("/proc");
	int fd;
	ssize_t got;

	while (all && (entry = readdir(all))) {
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		fd = strspn(entry->d_name, "0123456789") ? open(path, O_RDONLY) : -1;
		got = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);
		if (fd >= 0)
			close(fd);
		line[got > 0 ? got : 0] = 0;
		if (got <= 0 || !strrchr(line, ')') || sscanf(strrchr(line, ')') + 1, " %c", &state) != 1 || !strchr("RD", state))
			continue;
		fprintf(stderr, "  %s", line);
		snprintf(path, sizeof(path), "/proc/%s/stack", entry->d_name);
		tell_file(path);
	}
	if (all)
		closedir(all);
}

/* Prints the fuzzer's processes, the interrupts of 2 seconds and all tasks: what waits for what. */
static void tell_stacks(void)
{
	static bool told;
	char path[64];
	int fd;

	for (int i = 0; i <= PROCESSES; i++) {
		snprintf(path, sizeof(path), "/proc/%d/stack", shared->actor[i].pid);
		fprintf(stderr, "  process %d: %s\n", i, shared->actor[i].call);
		tell_file(path);
	}
	if (told)
		return;
	told = true;
	tell_interrupts();
	tell_tasks();
	sleep(2);
	tell_interrupts();
	fd = open("/proc/sysrq-trigger", O_WRONLY);
	if (fd >= 0 && (write(fd, "l", 1) != 1 || write(fd, "w", 1) != 1))
		perror("sysrq");
	if (fd >= 0)
		close(fd);
	tell_loop();
}

static void watch(void)
{
	uint64_t time = now();

	for (int i = 0; i <= PROCESSES; i++) {
		struct actor *actor = &shared->actor[i];
		uint64_t since = actor->since;

		if (!actor->call[0] || actor->told || time < since || time - since < PATIENCE * slow * 1000000000ULL)
			continue;
		actor->told = true;
		if (__sync_add_and_fetch(&shared->violations, 1) > MOST_TOLD)
			continue;
		fprintf(stderr, "VIOLATION hang: process %d (pid %d): %s takes %llu s\n", i, actor->pid, actor->call,
			(unsigned long long)(time - since) / 1000000000);
		tell_history(actor);
		tell_stacks();
	}
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
	sleep(2);
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

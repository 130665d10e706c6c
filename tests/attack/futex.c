// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that share a mutex and a condition variable in a page of a file, while a test moves that page.
 *
 *	futex FILE KIND SECONDS [sync]
 *
 * It ends with SIGTERM, but not before SECONDS are over.
 * KIND: plain, pi, robust. "sync" maps the file with MAP_SYNC. Four processes hand a token around, PROCESSES - 1 of
 * them waiting on the condition variable at any time; with "robust" one more process takes the mutex and dies with it.
 * After some rounds the process with the token pauses, and so do those that wait for it; then the page can move.
 * Prints the number of rounds. The exit status is 1 if a call failed, 2 if the token stood still for 60 s.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES	4
#define STALL_SECONDS	60	/* a move of the page waits for storage: a flush of the host's disk, which may be busy */
#define HOT_ROUNDS	256	/* then one pause */
#define PAUSE_US	40000	/* a page that is stored to all the time is seldom clean enough to leave PMem */

struct shared {
	pthread_mutex_t mutex;
	pthread_cond_t turned;
	unsigned long rounds;
	unsigned int turn;
	bool stop;
};

static volatile sig_atomic_t enough;

static void stop(int signal)
{
	enough = signal;
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	_exit(1);
}

/* A robust mutex whose owner died is made consistent. */
static void lock(struct shared *s)
{
	int err = pthread_mutex_lock(&s->mutex);

	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(&s->mutex);
	must(err, "pthread_mutex_lock");
}

static void wait_for_turn(struct shared *s)
{
	int err = pthread_cond_wait(&s->turned, &s->mutex);

	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(&s->mutex);
	must(err, "pthread_cond_wait");
}

static void hand_around(struct shared *s, unsigned int me)
{
	lock(s);
	while (!s->stop) {
		while (s->turn != me && !s->stop)
			wait_for_turn(s);
		if (!(++s->rounds % HOT_ROUNDS))
			usleep(PAUSE_US);
		s->turn = (me + 1) % PROCESSES;
		must(pthread_cond_broadcast(&s->turned), "pthread_cond_broadcast");
	}
	must(pthread_mutex_unlock(&s->mutex), "pthread_mutex_unlock");
	_exit(0);
}

static void die_with_mutex(struct shared *s)
{
	lock(s);
	_exit(0);
}

static void set_up(struct shared *s, const char *kind)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t turned;

	memset(s, 0, sizeof(*s));
	pthread_mutexattr_init(&mutex);
	pthread_condattr_init(&turned);
	must(pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED), "pshared");
	must(pthread_condattr_setpshared(&turned, PTHREAD_PROCESS_SHARED), "pshared");
	if (!strcmp(kind, "pi"))
		must(pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT), "protocol");
	if (!strcmp(kind, "robust"))
		must(pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST), "robust");
	must(pthread_mutex_init(&s->mutex, &mutex), "pthread_mutex_init");
	must(pthread_cond_init(&s->turned, &turned), "pthread_cond_init");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Returns the exit status; ends all children. */
static int watch(struct shared *s, const pid_t *children, bool robust, double end)
{
	unsigned long seen = 0;
	double moved = now();
	int status, bad = 0;
	pid_t victim;

	while (!bad && (now() < end || !enough)) {
		usleep(robust ? 30000 : 2000);
		if (__atomic_load_n(&s->rounds, __ATOMIC_RELAXED) != seen) {
			seen = __atomic_load_n(&s->rounds, __ATOMIC_RELAXED);
			moved = now();
		} else if (now() > moved + STALL_SECONDS) {
			bad = 2;
		}
		if (robust) {
			victim = fork();
			if (!victim)
				die_with_mutex(s);
			for (double until = now() + STALL_SECONDS; !waitpid(victim, &status, WNOHANG); usleep(200)) {
				if (now() > until) {
					kill(victim, SIGKILL);
					bad = 2;
				}
			}
		}
		if (waitpid(-1, &status, WNOHANG) > 0)
			bad = 1;
	}
	s->stop = true;
	for (double until = now() + STALL_SECONDS; !bad && now() < until;) {
		lock(s);
		pthread_cond_broadcast(&s->turned);
		pthread_mutex_unlock(&s->mutex);
		if (waitpid(-1, &status, 0) < 0)
			break;
		bad = status != 0;
	}
	for (int i = 0; i < PROCESSES; i++)
		kill(children[i], SIGKILL);
	printf("%lu\n", s->rounds);
	return bad;
}

int main(int argc, char **argv)
{
	int flags = argc > 4 ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
	pid_t children[PROCESSES];
	struct shared *s;
	int fd;

	if (argc < 4)
		return 64;
	fd = open(argv[1], O_RDWR);
	s = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (s == MAP_FAILED)
		must(errno, argv[1]);
	set_up(s, argv[2]);
	signal(SIGTERM, stop);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (!children[i])
			hand_around(s, i);
	}
	return watch(s, children, !strcmp(argv[2], "robust"), now() + atof(argv[3]));
}

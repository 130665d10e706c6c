// SPDX-License-Identifier: GPL-2.0-only
/*
 *	names_agree new FOLDER MODEL		makes the folders at the top
 *	names_agree run FOLDER MODEL SECONDS SEED
 *	names_agree check FOLDER MODEL		the tree is the model's
 *	names_agree cut FOLDER MODEL BEFORE AFTER	the tree is what a power cut may leave that came between tickets
 *
 * `run` begins a new history: storage has all that was done before.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

struct model *model;

int complain(const char *what, unsigned long number, unsigned long other)
{
	fprintf(stderr, "%s (%lu, %lu): %s\n", what, number, other, strerror(errno));
	return 1;
}

static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t shared;

	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(lock, &shared);
}

static int make_tops(int root)
{
	char name[16];

	model->next_object = TOPS + 1;
	model->next_folder = TOPS;
	for (uint32_t top = 0; top < TOPS; top++) {
		snprintf(name, sizeof(name), "t%u", top);
		if (mkdirat(root, name, 0777) || fchmodat(root, name, 0777, 0) || fchownat(root, name, top + 1, 0, 0))
			return complain("a folder can't be made", top, 0);
		model->object[top + 1] = (struct object){ .kind = IS_FOLDER, .folder = top };
	}
	return 0;
}

static void begin_history(void)
{
	for (unsigned int i = 0; i < model->next_object; i++)
		memset(model->object[i].changed, 0, sizeof(model->object[i].changed));
	memcpy(model->first, model->entry, sizeof(model->entry[0]) * model->next_folder);
	for (unsigned int i = 0; i < PROCESSES; i++)
		model->history[i].nr_ops = model->history[i].nr_promises = 0;
	for (unsigned int i = 0; i < TOPS; i++)
		init_lock(&model->top[i]);
	for (unsigned int i = 0; i < INODE_LOCKS; i++)
		init_lock(&model->inode[i]);
	init_lock(&model->lasts);
	model->stop = model->failed = 0;
}

/* Ends both processes as soon as one has failed: the other may wait for a lock. */
static int run(int root, long seconds, uint64_t seed)
{
	time_t until = time(NULL) + seconds;
	pid_t player[PROCESSES];
	int bad = 0, status;

	begin_history();
	for (unsigned int me = 0; me < PROCESSES; me++) {
		player[me] = fork();
		if (!player[me])
			_exit(play(root, me, seed + me));
	}
	while (!model->failed && !model->stop && time(NULL) < until)
		usleep(10000);
	model->stop = 1;
	for (unsigned int me = 0; me < PROCESSES; me++) {
		if (model->failed)
			kill(player[me], SIGKILL);
		waitpid(player[me], &status, 0);
		bad |= status;
	}
	printf("%lu tickets, %u objects\n", model->tickets, model->next_object);
	return bad || model->failed;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	int root = argc > 3 ? open(argv[2], O_RDONLY | O_DIRECTORY) : -1;
	int fd = argc > 3 ? open(argv[3], O_RDWR | O_CREAT, 0600) : -1;

	if (root < 0 || fd < 0 || ftruncate(fd, sizeof(*model)))
		return complain("usage: names_agree new|run|check|cut FOLDER MODEL ...", argc, 0);
	model = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (model == MAP_FAILED)
		return complain("no memory", 0, 0);
	umask(0);
	if (!strcmp(what, "new"))
		return make_tops(root);
	if (!strcmp(what, "check"))
		return check_now(root);
	if (!strcmp(what, "run") && argc == 6)
		return run(root, atol(argv[4]), strtoull(argv[5], NULL, 0));
	if (!strcmp(what, "cut") && argc == 6)
		return check_cut(root, strtoull(argv[4], NULL, 0), strtoull(argv[5], NULL, 0));
	return complain("what?", argc, 0);
}

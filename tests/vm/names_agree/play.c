// SPDX-License-Identifier: GPL-2.0-only
/* One of the processes: it changes names, looks at them and makes sync calls, and knows what each must return. */
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chosen.h"

static struct {
	int root;
	unsigned int number;
	uint64_t random;
	struct history *history;
} me;

static uint64_t draw(uint64_t below)
{
	me.random ^= me.random << 13;
	me.random ^= me.random >> 7;
	me.random ^= me.random << 17;
	return (me.random >> 8) % below;
}

static int fail(const char *what, const struct names *names, int got, int expected)
{
	fprintf(stderr, "process %u, ticket %lu: %s %s %s: error %d, expected %d\n", me.number, model->tickets, what,
		names->path[0], names->path[1], got, expected);
	model->failed = 1;
	return 1;
}

/* A name of the top that is locked: in the top, or in a folder there. */
static void choose(struct names *names, unsigned int which)
{
	struct place *place = &names->place[which];
	uint32_t number = draw(NAMES), in;
	int len;

	*place = (struct place){ names->top[which], number };
	in = *entry_of(*place);
	len = snprintf(names->path[which], sizeof(names->path[which]), "t%u/n%u", names->top[which], number);
	names->sub[which] = NAMES;
	if (kind_of(in) == IS_FOLDER && draw(4)) {
		names->sub[which] = draw(NAMES);
		*place = (struct place){ folder_at(in), names->sub[which] };
		snprintf(names->path[which] + len, sizeof(names->path[which]) - len, "/n%u", names->sub[which]);
	}
	names->object[which] = *entry_of(*place);
}

static void lock(struct names *names, bool two)
{
	uint32_t a, b;

	*names = (struct names){ .top = { draw(TOPS), draw(TOPS) } };
	a = names->top[0];
	b = two ? names->top[1] : a;
	pthread_mutex_lock(&model->top[a < b ? a : b]);
	if (a != b)
		pthread_mutex_lock(&model->top[a < b ? b : a]);
	choose(names, 0);
	if (two)
		choose(names, 1);
}

static void unlock(struct names *names, bool two)
{
	pthread_mutex_unlock(&model->top[names->top[0]]);
	if (two && names->top[0] != names->top[1])
		pthread_mutex_unlock(&model->top[names->top[1]]);
}

/* A change of one or two names begins. One that must fail isn't noted. */
static struct op *begin(struct names *names, unsigned int nr, int expected)
{
	static struct op none;
	unsigned int number = me.history->nr_ops;
	struct op *op = &me.history->op[number < OPS ? number : OPS - 1];

	if (expected)
		op = &none;
	*op = (struct op){ .begun = ticket(), .nr = nr };
	for (unsigned int i = 0; i < nr; i++) {
		op->place[i] = names->place[i];
		op->before[i] = op->after[i] = names->object[i];
	}
	return op;
}

/* What it will bind is noted, too: from now on it may be found after a cut. */
static void begun(int expected)
{
	if (!expected)
		atomic_fetch_add(&me.history->nr_ops, 1);
}

static void changed(uint32_t object)
{
	if (object)
		model->object[object].changed[me.number] = me.history->nr_ops;
}

/* The folder's object: whose number its entry has. A top's is its number plus 1. */
static uint32_t holder(const struct names *names, unsigned int which)
{
	struct place at = { names->top[which], 0 };

	if (names->sub[which] == NAMES)
		return names->top[which] + 1;
	for (at.name = 0; at.name < NAMES; at.name++)
		if (kind_of(*entry_of(at)) == IS_FOLDER && folder_at(*entry_of(at)) == names->place[which].folder)
			return *entry_of(at);
	return 0;
}

/* The change was made, and the model follows. */
static void end(struct op *op, struct names *names)
{
	uint32_t in[2] = { holder(names, 0), op->nr > 1 ? holder(names, 1) : 0 };

	pthread_mutex_lock(&model->lasts);
	for (unsigned int i = 0; i < op->nr; i++) {
		if (op->before[i] == op->after[i])
			continue;
		changed(op->before[i]);
		changed(op->after[i]);
		changed(in[i]);
		model->object[op->before[i]].links--;
		model->object[op->after[i]].links++;
	}
	pthread_mutex_unlock(&model->lasts);
	for (unsigned int i = 0; i < op->nr; i++)
		*entry_of(op->place[i]) = op->after[i];
	op->ended = ticket();
}

static int write_content(int fd, uint32_t object)
{
	static char bytes[16384];
	long length = length_of(object);

	for (long i = 0; i < length; i++)
		bytes[i] = byte_of(object, i);
	return pwrite(fd, bytes, length, 0) == length ? 0 : EIO;
}

/* A file, made with a name, or named later: then it has its content before. */
static int make_file(struct names *names, uint32_t object, bool nameless)
{
	char link[40], folder[40];
	int fd, err;

	setfsuid(object);
	strcpy(folder, names->path[0]);
	*strrchr(folder, '/') = 0;
	fd = nameless ? openat(me.root, folder, O_TMPFILE | O_RDWR, 0600) :
			openat(me.root, names->path[0], O_CREAT | O_EXCL | O_RDWR, 0600);
	err = fd < 0 ? errno : write_content(fd, object);
	setfsuid(0);
	if (!err && nameless) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		err = linkat(AT_FDCWD, link, me.root, names->path[0], AT_SYMLINK_FOLLOW) ? errno : 0;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static uint32_t new_object(bool folder)
{
	uint32_t object = atomic_fetch_add(&model->next_object, 1);

	model->object[object] = (struct object){ .kind = folder ? IS_FOLDER : IS_FILE };
	if (folder)
		model->object[object].folder = atomic_fetch_add(&model->next_folder, 1);
	return object;
}

static int do_create(bool folder)
{
	struct names names;
	int err, expected;
	uint32_t object;
	struct op *op;

	lock(&names, false);
	expected = names.object[0] ? EEXIST : 0;
	folder &= names.sub[0] == NAMES && nr_folders(names.top[0]) < NAMES / 2;
	object = expected ? OBJECTS - 1 : new_object(folder);
	op = begin(&names, 1, expected);
	op->after[0] = object;
	begun(expected);
	if (folder) {
		setfsuid(object);
		err = mkdirat(me.root, names.path[0], 0777) ? errno : 0;
		setfsuid(0);
	} else {
		err = make_file(&names, object, !draw(5));
	}
	if (err != expected)
		return fail(folder ? "mkdir" : "create", &names, err, expected);
	if (!err)
		end(op, &names);
	unlock(&names, false);
	return 0;
}

static int do_remove(bool folder)
{
	struct names names;
	int err, expected;
	struct op *op;

	lock(&names, false);
	expected = expected_of_remove(&names, folder);
	op = begin(&names, 1, expected);
	op->after[0] = 0;
	begun(expected);
	err = unlinkat(me.root, names.path[0], folder ? AT_REMOVEDIR : 0) ? errno : 0;
	if (err != expected)
		return fail(folder ? "rmdir" : "unlink", &names, err, expected);
	if (!err)
		end(op, &names);
	unlock(&names, false);
	return 0;
}

static int do_link(void)
{
	struct names names;
	int err, expected;
	struct op *op;

	lock(&names, true);
	expected = expected_of_link(&names);
	op = begin(&names, 2, expected);
	op->after[1] = names.object[0];
	begun(expected);
	err = linkat(me.root, names.path[0], me.root, names.path[1], 0) ? errno : 0;
	if (err != expected)
		return fail("link", &names, err, expected);
	if (!err)
		end(op, &names);
	unlock(&names, true);
	return 0;
}

static int do_rename(void)
{
	static const unsigned int kinds[] = { 0, 0, 0, NOREPLACE, EXCHANGE };
	unsigned int flags = kinds[draw(5)];
	struct names names;
	int err, expected;
	struct op *op;

	lock(&names, true);
	expected = expected_of_rename(&names, flags);
	if (!expected && too_deep(&names, flags)) {
		unlock(&names, true);
		return 0;
	}
	op = begin(&names, 2, expected);
	/* Two names of one file, or a name and itself: nothing is done. */
	if (names.object[0] != names.object[1]) {
		op->after[0] = flags == EXCHANGE ? names.object[1] : 0;
		op->after[1] = names.object[0];
	}
	begun(expected);
	err = renameat2(me.root, names.path[0], me.root, names.path[1], flags) ? errno : 0;
	if (err == EEXIST && expected == ENOTEMPTY)	/* xfs says it so; POSIX has both */
		err = expected;
	if (err != expected)
		return fail("rename", &names, err, expected);
	if (!err)
		end(op, &names);
	unlock(&names, true);
	return 0;
}

static pthread_mutex_t *inode_lock(uint32_t object)
{
	return &model->inode[object % INODE_LOCKS];
}

static int do_touch(void)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct names names;
	int err = 0;

	lock(&names, false);
	if (kind_of(names.object[0]) == IS_FILE) {
		pthread_mutex_lock(inode_lock(names.object[0]));
		times[1].tv_sec = MTIME + ++model->object[names.object[0]].version;
		err = utimensat(me.root, names.path[0], times, 0) ? errno : 0;
		pthread_mutex_unlock(inode_lock(names.object[0]));
	}
	if (err)
		return fail("utimensat", &names, err, 0);
	unlock(&names, false);
	return 0;
}

/* Noted before the call: what is done by now. The call itself runs beside changes. */
static int do_sync(void)
{
	unsigned int nr = me.history->nr_promises;
	struct promise promise = { };
	struct names names;
	uint32_t object;
	int fd, err;

	lock(&names, false);
	object = draw(3) ? names.object[0] : names.top[0] + 1;
	if (object == names.top[0] + 1)
		*strchr(names.path[0], '/') = 0;
	fd = object ? openat(me.root, names.path[0], O_RDONLY) : -1;
	err = object && fd < 0 ? errno : 0;
	pthread_mutex_lock(&model->lasts);
	for (unsigned int i = 0; object && i < PROCESSES; i++)
		promise.need[i] = model->object[object].changed[i];
	pthread_mutex_unlock(&model->lasts);
	if (kind_of(object) == IS_FILE) {
		pthread_mutex_lock(inode_lock(object));
		promise.object = object;
		promise.version = model->object[object].version;
		pthread_mutex_unlock(inode_lock(object));
	}
	unlock(&names, false);
	if (fd >= 0) {
		err = fsync(fd) ? errno : 0;
		close(fd);
		promise.ended = ticket();
		if (nr < OPS && me.history->nr_ops < OPS) {
			me.history->promise[nr] = promise;
			atomic_store(&me.history->nr_promises, nr + 1);
		}
	}
	return err ? fail("fsync", &names, err, 0) : 0;
}

static int do_look(void)
{
	struct names names;
	struct stat stat;
	int err, expected;

	lock(&names, false);
	expected = names.object[0] ? 0 : ENOENT;
	err = fstatat(me.root, names.path[0], &stat, AT_SYMLINK_NOFOLLOW) ? errno : 0;
	if (!err && !expected && (stat.st_uid != names.object[0] ||
				  S_ISDIR(stat.st_mode) != (kind_of(names.object[0]) == IS_FOLDER)))
		err = EUCLEAN;
	if (err != expected)
		return fail("stat", &names, err, expected);
	unlock(&names, false);
	return 0;
}

static int do_something(void)
{
	unsigned int what = draw(100);

	if (what < 24)
		return do_create(what < 5);
	if (what < 36)
		return do_remove(what < 28);
	if (what < 44)
		return do_link();
	if (what < 64)
		return do_rename();
	if (what < 72)
		return do_touch();
	return what < 90 ? do_sync() : do_look();
}

/* Plays until the model says stop, or its tables are full. Returns 1 if a call was wrong. */
int play(int root, unsigned int number, uint64_t seed)
{
	me.root = root;
	me.number = number;
	me.random = seed * 2 + 88172645463325252ULL;
	me.history = &model->history[number];
	while (!model->stop && model->next_object < OBJECTS - PROCESSES && model->next_folder < FOLDERS - PROCESSES)
		if (do_something())
			return 1;
	return 0;
}

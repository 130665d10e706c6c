// SPDX-License-Identifier: GPL-2.0-only
/* What is in a tree, and whether it is what the model says: now, or at one moment before a power cut. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model.h"

static struct found *new_found(void)
{
	return mmap(NULL, sizeof(struct found), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Bytes of a file are its own, or were not written. */
static int read_content(int dir, const char *name, uint32_t object, struct found *found)
{
	static char bytes[16384];
	int fd = openat(dir, name, O_RDONLY);
	long length = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	long written = 0;

	if (fd >= 0)
		close(fd);
	if (length < 0 || length > length_of(object))
		return complain("a file has a wrong length", object, length);
	for (long i = 0; i < length; i++) {
		if (bytes[i] && bytes[i] != byte_of(object, i))
			return complain("a file has other bytes", object, i);
		written += !!bytes[i];
	}
	found->whole[object] = written == length_of(object);
	return 0;
}

static int walk_folder(int parent, const char *name, uint32_t object, struct found *found);

static int note_entry(int dir, uint32_t folder, const char *name, struct found *found)
{
	unsigned int number, object;
	struct stat stat;

	errno = 0;
	if (sscanf(name, "n%u", &number) != 1 || number >= NAMES || fstatat(dir, name, &stat, AT_SYMLINK_NOFOLLOW))
		return complain("a folder has a name that it never had", folder, 0);
	object = stat.st_uid;
	if (!object || object >= model->next_object ||
	    (model->object[object].kind == IS_FOLDER) != S_ISDIR(stat.st_mode))
		return complain("a name stands for what was never made", folder, object);
	found->entry[folder][number] = object;
	if (S_ISDIR(stat.st_mode) && found->there[object])
		return complain("a folder has two names", folder, object);
	found->there[object] = true;
	if (S_ISDIR(stat.st_mode))
		return walk_folder(dir, name, object, found);
	found->links[object] = stat.st_nlink;
	if (stat.st_mtime > MTIME && stat.st_mtime < MTIME + MTIME / 2)
		found->version[object] = stat.st_mtime - MTIME;
	return read_content(dir, name, object, found);
}

static int walk_folder(int parent, const char *name, uint32_t object, struct found *found)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY), bad = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir)
		return complain("a folder can't be read", object, 0);
	while (!bad && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			bad = note_entry(fd, model->object[object].folder, entry->d_name, found);
	closedir(dir);
	return bad;
}

static int walk(int root, struct found *found)
{
	char name[16];

	for (uint32_t top = 0; top < TOPS; top++) {
		snprintf(name, sizeof(name), "t%u", top);
		if (walk_folder(root, name, top + 1, found))
			return 1;
	}
	errno = 0;
	return 0;
}

/* `check`: no process changes anything. */
int check_now(int root)
{
	struct found *found = new_found();
	int bad = walk(root, found);

	for (uint32_t folder = 0; !bad && folder < model->next_folder; folder++)
		for (uint32_t name = 0; name < NAMES; name++)
			if (found->entry[folder][name] != model->entry[folder][name])
				bad = complain("a name stands for another object than the model's",
					       found->entry[folder][name], model->entry[folder][name]);
	for (uint32_t i = TOPS + 1; !bad && i < model->next_object; i++) {
		const struct object *object = &model->object[i];

		if (object->kind != IS_FILE || !object->links)
			continue;
		if (found->links[i] != object->links)
			bad = complain("a file has a wrong link count", i, found->links[i]);
		else if (found->version[i] != object->version)
			bad = complain("a file has another mtime", i, found->version[i]);
		else if (!found->whole[i])
			bad = complain("a file lacks content", i, 0);
	}
	return bad;
}

/* The state while operations are added and taken away, and how many names differ from what was found. */
static struct {
	uint32_t (*entry)[NAMES];
	const struct found *found;
	unsigned int wrong;
} state;

static void set(struct place place, uint32_t object)
{
	uint32_t *entry = &state.entry[place.folder][place.name];
	uint32_t found = state.found->entry[place.folder][place.name];

	state.wrong += (object != found) - (*entry != found);
	*entry = object;
}

static void add(const struct op *op)
{
	for (unsigned int i = 0; i < op->nr; i++)
		set(op->place[i], op->after[i]);
}

static void take_away(const struct op *op)
{
	for (unsigned int i = op->nr; i--; )
		set(op->place[i], op->before[i]);
}

static uint64_t ended(const struct op *op)
{
	return op->ended ? op->ended : UINT64_MAX;
}

static void start_state(const struct found *found)
{
	state.entry = model->first;
	state.found = found;
	state.wrong = 0;
	for (uint32_t folder = 0; folder < model->next_folder; folder++)
		for (uint32_t name = 0; name < NAMES; name++)
			state.wrong += model->first[folder][name] != found->entry[folder][name];
}

static int tell_state(uint32_t ops, uint32_t others, const uint32_t *need)
{
	fprintf(stderr,
		"names are as at no moment since the last sync; nearest: %u and %u changes, at least %u and %u:\n", ops, others, need[0], need[1]);
	for (uint32_t folder = 0; folder < model->next_folder; folder++)
		for (uint32_t name = 0; name < NAMES; name++)
			if (state.entry[folder][name] != state.found->entry[folder][name])
				fprintf(stderr, "  n%u in folder %u is object %u, not %u\n", name, folder,
					state.found->entry[folder][name], state.entry[folder][name]);
	return 1;
}

/*
 * The names found are those after the first operations of each process: so many of one, so many of the
 * other. What ended before an operation that is there began is there, too. Operations that ran side by side
 * have no order: they changed different names, since locks keep others apart. A state with @nearest wrong
 * names is told of.
 */
static int find_moment(const uint32_t *nr, const uint32_t *need, unsigned int *nearest)
{
	const struct op *mine = model->history[0].op, *its = model->history[1].op;
	unsigned int least = UINT32_MAX;
	uint32_t base = 0, i, j;

	for (i = 0; i <= nr[0]; i++) {
		for (; i && base < nr[1] && ended(&its[base]) < mine[i - 1].begun; base++)
			add(&its[base]);
		if (i)
			add(&mine[i - 1]);
		for (j = base; ; j++) {
			bool allowed = i >= need[0] && j >= need[1];

			if (allowed && !state.wrong)
				return 0;
			if (allowed && state.wrong < least)
				least = state.wrong;
			if (allowed && state.wrong == *nearest)
				return tell_state(i, j, need);
			if (j == nr[1] || (i < nr[0] && its[j].begun > ended(&mine[i])))
				break;
			add(&its[j]);
		}
		while (j > base)
			take_away(&its[--j]);
	}
	*nearest = least;
	return 1;
}

/* Contents and mtimes that sync calls have promised. The rest is only what was ever there. */
static int check_promises(const struct found *found, uint64_t before, uint32_t *need)
{
	for (unsigned int i = 0; i < PROCESSES; i++) {
		const struct history *history = &model->history[i];

		for (unsigned int nr = 0; nr < history->nr_promises; nr++) {
			const struct promise *promise = &history->promise[nr];
			uint32_t object = promise->object;

			if (promise->ended >= before)
				continue;
			for (unsigned int k = 0; k < PROCESSES; k++)
				need[k] = promise->need[k] > need[k] ? promise->need[k] : need[k];
			if (!object || !found->there[object])
				continue;
			if (!found->whole[object])
				return complain("a file lacks content that was synced", object, nr);
			if (found->version[object] < promise->version)
				return complain("a file has an mtime from before its sync", object, promise->version);
		}
	}
	return 0;
}

static int check_links(const struct found *found)
{
	static uint32_t names[OBJECTS];

	for (uint32_t folder = 0; folder < model->next_folder; folder++)
		for (uint32_t name = 0; name < NAMES; name++)
			names[found->entry[folder][name]]++;
	for (uint32_t i = 1; i < model->next_object; i++)
		if (model->object[i].kind == IS_FILE && found->there[i] && found->links[i] != names[i])
			return complain("a file has a wrong link count", i, found->links[i]);
	return 0;
}

/* `cut`: how many tickets were given before the cut began, and before it ended. */
int check_cut(int root, uint64_t before, uint64_t after)
{
	uint32_t nr[PROCESSES], need[PROCESSES] = { };
	struct found *found = new_found();
	unsigned int nearest = UINT32_MAX;
	uint32_t (*first)[NAMES];
	int bad;

	if (walk(root, found) || check_promises(found, before, need) || check_links(found))
		return 1;
	for (unsigned int i = 0; i < PROCESSES; i++) {
		if (model->history[i].nr_ops >= OPS)
			return complain("too many changes for the history", i, model->history[i].nr_ops);
		for (nr[i] = model->history[i].nr_ops; nr[i] && model->history[i].op[nr[i] - 1].begun >= after; )
			nr[i]--;
	}
	first = malloc(sizeof(model->first[0]) * model->next_folder);
	memcpy(first, model->first, sizeof(model->first[0]) * model->next_folder);
	start_state(found);
	bad = find_moment(nr, need, &nearest);
	printf("%u and %u changes, of which %u and %u were synced\n", nr[0], nr[1], need[0], need[1]);
	if (bad) {	/* once more, to tell of the nearest */
		memcpy(model->first, first, sizeof(model->first[0]) * model->next_folder);
		start_state(found);
		find_moment(nr, need, &nearest);
	}
	memcpy(model->first, first, sizeof(model->first[0]) * model->next_folder);
	free(first);
	return bad;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of descriptors, and what a fork does to it.
 *
 * Entries are used again, but never freed: a lookup takes no lock.
 */
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/state.h"
#include "others.h"
#include "real.h"
#include "settings.h"

#define NR_CLAIMS	16384

static struct entry *table[MAX_FD];
static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct entry *used, *unused;	/* lists under table_mutex */
static struct entry *own[MAX_FD];	/* by the number of the log's own descriptor */
static unsigned int *claims;		/* the first one counts those given out */

__thread bool table_opens;

/**
 * entry_find - the entry of a descriptor
 * @fd: any number
 *
 * Context: any thread; no lock.
 * Return: the entry, or NULL.
 */
struct entry *entry_find(int fd)
{
	return fd < 0 || fd >= MAX_FD ? NULL : __atomic_load_n(&table[fd], __ATOMIC_ACQUIRE);
}

static void set_own(int fd, struct entry *entry)
{
	if (fd < MAX_FD)
		__atomic_store_n(&own[fd], entry, __ATOMIC_RELEASE);
}

/* The log's descriptor is closed so that the lock on the file is the parent's alone. */
static void after_fork(void)
{
	for (struct entry *entry = used; entry; entry = entry->next) {
		pthread_mutex_init(&entry->mutex, NULL);
		pthread_cond_init(&entry->idle, NULL);
		entry->users = 0;
		entry->claimed = false;
		entry->inherited = true;
		entry->process = getpid();
		if (entry->log && entry->log->fd >= 0) {
			set_own(entry->log->fd, NULL);
			REAL(close)(entry->log->fd);
			entry->log->fd = -1;
		}
	}
	pthread_mutex_unlock(&table_mutex);
}

static void before_fork(void)
{
	pthread_mutex_lock(&table_mutex);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&table_mutex);
}

__attribute__((constructor(102)))
static void begin(void)
{
	claims = mmap(NULL, NR_CLAIMS * sizeof(*claims), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (claims == MAP_FAILED)
		claims = NULL;
	pthread_atfork(before_fork, after_fork_in_parent, after_fork);
}

/* Each file has its size when the program ends. */
__attribute__((destructor))
static void end(void)
{
	for (int fd = 0; fd < MAX_FD; fd++)
		leave(fd);
}

static struct entry *new_entry(void)
{
	struct entry *entry = unused;

	if (entry) {
		unused = entry->next;
		return entry;
	}
	entry = calloc(1, sizeof(*entry));
	if (entry) {
		pthread_mutex_init(&entry->mutex, NULL);
		pthread_cond_init(&entry->idle, NULL);
	}
	return entry;
}

/* The numbers come round. One that an entry still has is left out, as long as there is another. */
static unsigned int *new_claim(void)
{
	struct entry *entry = NULL;
	unsigned int number = 0;

	for (int tries = 0; tries < NR_CLAIMS && (entry || !number); tries++) {
		number = __atomic_add_fetch(&claims[0], 1, __ATOMIC_RELAXED) % (NR_CLAIMS - 1) + 1;
		entry = used;
		while (entry && entry->claim != &claims[number])
			entry = entry->next;
	}
	return &claims[number];
}

/* Fills in a new entry, and puts it into the table. */
static void insert(struct entry *entry, int fd, int flags, struct forebay_log *log, const struct stat *st)
{
	entry->fd = fd;
	entry->device = st->st_dev;
	entry->inode = st->st_ino;
	entry->appends = flags & O_APPEND;
	entry->syncs = flags & (O_SYNC | O_DSYNC);
	entry->claim = new_claim();
	__atomic_store_n(entry->claim, FREE, __ATOMIC_RELAXED);
	entry->process = getpid();
	entry->inherited = false;
	entry->log = log;
	entry->left = !log;
	entry->claimed = false;
	entry->named = false;
	entry->position = 0;
	entry->next = used;
	used = entry;
	if (log)
		set_own(log->fd, entry);
	__atomic_store_n(&table[fd], entry, __ATOMIC_RELEASE);
}

/**
 * entry_is_of - whether an entry is that of a file
 * @entry: found without its mutex: it may have been forgotten since, and be another file's now
 * @device: as stat(2) has it
 * @inode: the same
 *
 * Context: holds the entry's mutex.
 * Return: true if it is.
 */
bool entry_is_of(const struct entry *entry, dev_t device, ino_t inode)
{
	return entry->device == device && entry->inode == inode;
}

/* At most one entry of a file has not been left. That one is found, if there is one. Under table_mutex. */
static struct entry *find_file(dev_t device, ino_t inode)
{
	struct entry *found = NULL;

	for (struct entry *entry = used; entry; entry = entry->next) {
		if (!entry_is_of(entry, device, inode))
			continue;
		found = entry;
		if (!__atomic_load_n(&entry->left, __ATOMIC_ACQUIRE))
			break;
	}
	return found;
}

/**
 * entry_add - make a log of a descriptor that was opened for writing alone
 * @fd: the descriptor
 * @flags: of its open(2)
 *
 * A file that can't be a log stays as it is. Another thread may open the file, too, at any moment: so the
 * other descriptors are looked for before, and again once the entry is in the table, where that thread looks.
 * Context: any thread; waits for storage if a crash left something.
 * Return: 0; -1 with EBUSY if another process has the log: writing beside it would destroy it.
 */
int entry_add(int fd, int flags)
{
	struct entry *entry, *other;
	struct forebay_log *log = NULL;
	int own_fd = -1;
	struct stat st;

	if (!claims || fd >= MAX_FD || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	if (!entry_of_file(st.st_dev, st.st_ino) && !others_have(fd, -1, &st)) {
		table_opens = true;
		log = forebay_log_open(fd, settings_options());
		table_opens = false;
		if (!log)
			return errno == EBUSY ? -1 : 0;
		own_fd = log->fd;
	}
	pthread_mutex_lock(&table_mutex);
	other = find_file(st.st_dev, st.st_ino);
	entry = new_entry();
	if (entry)
		insert(entry, fd, flags, log, &st);
	pthread_mutex_unlock(&table_mutex);
	if (other)
		entry_leave_file(other, &st);
	if (!entry && log)
		forebay_log_close(log);
	else if (log && others_have(fd, own_fd, &st))
		leave(fd);
	if (entry)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

/**
 * entry_forget - take an entry out of the table; its descriptor is closed next
 * @entry: left
 *
 * Context: any thread; no lock.
 */
void entry_forget(struct entry *entry)
{
	struct entry **at = &used;

	pthread_mutex_lock(&table_mutex);
	while (*at && *at != entry)
		at = &(*at)->next;
	if (*at) {
		*at = entry->next;
		__atomic_store_n(&table[entry->fd], NULL, __ATOMIC_RELEASE);
		entry->next = unused;
		unused = entry;
	}
	pthread_mutex_unlock(&table_mutex);
}

/**
 * table_recover - cut what a crash left of a log
 * @fd: of its file
 *
 * Context: any thread; waits for storage.
 * Return: as forebay_log_recover().
 */
off_t table_recover(int fd)
{
	off_t end;

	table_opens = true;
	end = forebay_log_recover(fd);
	table_opens = false;
	return end;
}

/**
 * entry_leave - give the file its size, and leave its calls to the kernel; errno stays as it is
 * @entry: any
 *
 * If a sync fails, the program's own descriptor gets the error from the kernel at its next sync.
 * Context: holds the entry's mutex; waits for storage.
 */
void entry_leave(struct entry *entry)
{
	struct forebay_log *log;
	int err = errno;

	while (entry->users)
		pthread_cond_wait(&entry->idle, &entry->mutex);
	log = entry->log;
	entry->log = NULL;
	if (log && log->fd >= 0) {
		set_own(log->fd, NULL);
		forebay_log_close(log);
		if (entry->claimed) {
			REAL(lseek)(entry->fd, entry->position, SEEK_SET);
			__atomic_store_n(entry->claim, PLAIN, __ATOMIC_SEQ_CST);
		}
	}
	__atomic_store_n(&entry->left, true, __ATOMIC_RELEASE);
	errno = err;
}

/**
 * entry_leave_file - leave a log that was found without a lock
 * @entry: may have been forgotten since
 * @file: which file it was found for
 *
 * Context: any thread; waits for storage.
 */
void entry_leave_file(struct entry *entry, const struct stat *file)
{
	pthread_mutex_lock(&entry->mutex);
	if (entry_is_of(entry, file->st_dev, file->st_ino))
		entry_leave(entry);
	pthread_mutex_unlock(&entry->mutex);
}

/**
 * entry_settle - give the file its size; the next append makes a log of it again
 * @entry: any
 *
 * Context: holds the entry's mutex; waits for storage.
 */
void entry_settle(struct entry *entry)
{
	if (entry->log && entry->log->fd >= 0 && forebay_log_settle(entry->log))
		entry_leave(entry);
}

/**
 * table_is_used - whether the table has any entry
 *
 * Context: any thread; no lock.
 */
bool table_is_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED);
}

/**
 * entry_of_file - the entry of a file
 * @device: as stat(2) has it
 * @inode: the same
 *
 * Context: any thread; no lock.
 * Return: an entry, maybe one that is left; NULL if there is none.
 */
struct entry *entry_of_file(dev_t device, ino_t inode)
{
	struct entry *entry;

	pthread_mutex_lock(&table_mutex);
	entry = find_file(device, inode);
	pthread_mutex_unlock(&table_mutex);
	return entry;
}

/**
 * entry_end - where a log ends for the program
 * @entry: any
 * @end: set to the end of the log, in bytes
 *
 * Context: holds the entry's mutex.
 * Return: false if the file is not mapped as a log, and has the size that the kernel says.
 */
bool entry_end(struct entry *entry, off_t *end)
{
	bool mapped;

	if (!entry->log || entry->log->fd < 0)
		return false;
	pthread_mutex_lock(&entry->log->mutex);
	mapped = entry->log->is_mapped;
	*end = (off_t)entry->log->end;
	pthread_mutex_unlock(&entry->log->mutex);
	return mapped;
}

/**
 * entry_size - the size that a file has for the program
 * @device: as stat(2) has it
 * @inode: the same
 * @size: set to the end of the log, in bytes
 *
 * Context: any thread; no lock.
 * Return: false if the file is not mapped as a log, and has the size that the kernel says.
 */
bool entry_size(dev_t device, ino_t inode, off_t *size)
{
	struct entry *entry = table_is_used() ? entry_of_file(device, inode) : NULL;
	bool mapped;

	if (!entry || entry->inherited)
		return false;
	pthread_mutex_lock(&entry->mutex);
	mapped = entry_is_of(entry, device, inode) && entry_end(entry, size);
	pthread_mutex_unlock(&entry->mutex);
	return mapped;
}

/**
 * entry_of_path - the entry of the file that a path leads to, by whatever name
 * @directory: as for openat(2)
 * @path: any
 * @st: set to what the file is
 *
 * Context: any thread; errno stays.
 * Return: an entry, found without its mutex; NULL if there is none.
 */
struct entry *entry_of_path(int directory, const char *path, struct stat *st)
{
	struct entry *entry = NULL;
	int err = errno;

	if (table_is_used() && !REAL(fstatat)(directory, path, st, 0))
		entry = entry_of_file(st->st_dev, st->st_ino);
	errno = err;
	return entry;
}

/**
 * leave_own - leave the log that has this descriptor for itself: the program is about to close it
 * @fd: any number
 *
 * Context: any thread; waits for storage.
 */
void leave_own(int fd)
{
	struct entry *entry = fd < 0 || fd >= MAX_FD ? NULL : __atomic_load_n(&own[fd], __ATOMIC_ACQUIRE);

	if (entry)
		leave(entry->fd);
}

/**
 * leave - leave a descriptor, if it is a log of this process
 * @fd: any number
 *
 * A child of vfork(2) shares the memory of its parent, and leaves nothing.
 * Context: any thread; waits for storage.
 */
void leave(int fd)
{
	struct entry *entry = entry_find(fd);

	if (!entry || entry->process != getpid())
		return;
	pthread_mutex_lock(&entry->mutex);
	entry_leave(entry);
	pthread_mutex_unlock(&entry->mutex);
}

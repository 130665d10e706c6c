// SPDX-License-Identifier: GPL-2.0-only
/*
 * An engine for fio with the options of hybrid-storage-thesis 4.4.2: jobs read and write a mapping of their
 * file, which may be a device-DAX node. bench/engine.py builds it.
 *
 *	fio --ioengine=external:PATH/fio-dax.so [--dax=1 [--dax_msync=1]] [--dax_pin=1] ...
 *
 * Without an option it does what fio's own engine mmap does: MAP_SHARED, memcpy(), and msync() of the whole
 * mapping when fio syncs.
 */
#include "fio.h"
#include "optgroup.h"

#include <libpmem.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <forebay.h>

struct dax_options {
	void *td;		/* fio's */
	unsigned int dax;
	unsigned int msync;
	unsigned int pin;
};

/*
 * A pinned file. Forebay counts a page once for each open file description that pins it. So all threads of a
 * job pin by one.
 */
struct dax_pin {
	struct dax_pin *next;
	dev_t dev;
	ino_t ino;
	int fd;			/* of the first thread's description; closing it ends the pins */
	unsigned int users;
};

struct dax_mapping {
	char *start;		/* of the whole file */
	size_t size;
	struct dax_pin *pin;	/* NULL: none, or locked */
};

static struct dax_pin *pins;	/* under pins_lock */
static pthread_mutex_t pins_lock = PTHREAD_MUTEX_INITIALIZER;

static struct fio_option options[] = {
	{
		.name = "dax",
		.lname = "Map with MAP_SYNC",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct dax_options, dax),
		.def = "0",
		.help = "Map with MAP_SYNC or fail, flush each block from the caches; a sync is a fence",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "dax_msync",
		.lname = "msync() in spite of dax",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct dax_options, msync),
		.def = "0",
		.help = "With dax: copy with memcpy(), sync with msync()",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "dax_pin",
		.lname = "Pin the job's part of the file",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct dax_options, pin),
		.def = "0",
		.help = "Pin the job's part of the file: forebay_pin(), on other file systems mlock()",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{ .name = NULL },
};

static bool by_fence(const struct dax_options *o)
{
	return o->dax && !o->msync;
}

/* Of a device-DAX node; fio knows that of files. */
static int dax_get_file_size(struct thread_data *td, struct fio_file *f)
{
	unsigned long long size;
	char path[PATH_MAX];
	struct stat st;
	FILE *file;
	int found;

	if (f->filetype != FIO_TYPE_CHAR)
		return generic_get_file_size(td, f);
	if (stat(f->file_name, &st)) {
		td_verror(td, errno, f->file_name);
		return 1;
	}
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/size", major(st.st_rdev), minor(st.st_rdev));
	file = fopen(path, "r");
	found = file ? fscanf(file, "%llu", &size) : 0;
	if (file)
		fclose(file);
	if (found != 1 || f->file_offset > size) {
		td_verror(td, EINVAL, path);
		return 1;
	}
	f->real_file_size = size;
	fio_file_set_size_known(f);
	return 0;
}

/* That of the file, made if there is none; NULL without memory. */
static struct dax_pin *dax_pin_find(struct fio_file *f)
{
	struct dax_pin *pin;
	struct stat st;

	if (fstat(f->fd, &st))
		return NULL;
	for (pin = pins; pin; pin = pin->next) {
		if (pin->dev == st.st_dev && pin->ino == st.st_ino)
			return pin;
	}
	pin = malloc(sizeof(*pin));
	if (!pin)
		return NULL;
	*pin = (struct dax_pin){ pins, st.st_dev, st.st_ino, dup(f->fd), 0 };
	pins = pin;
	return pin;
}

/* Closes one that no job uses. */
static void dax_pin_put(struct dax_pin *pin)
{
	struct dax_pin **at;

	if (pin->users)
		return;
	for (at = &pins; *at != pin; at = &(*at)->next)
		;
	*at = pin->next;
	close(pin->fd);
	free(pin);
}

/* Returns 0 or an errno; ENOTTY if the file is not on Forebay. */
static int dax_pin(struct fio_file *f, struct dax_mapping *map)
{
	struct dax_pin *pin;
	int err = ENOMEM;

	pthread_mutex_lock(&pins_lock);
	pin = dax_pin_find(f);
	if (pin) {
		err = forebay_pin(pin->fd, f->file_offset, f->io_size, 0) ? errno : 0;
		if (err) {
			dax_pin_put(pin);
		} else {
			pin->users++;
			map->pin = pin;
		}
	}
	pthread_mutex_unlock(&pins_lock);
	return err;
}

static void dax_unpin(struct dax_pin *pin)
{
	pthread_mutex_lock(&pins_lock);
	pin->users--;
	dax_pin_put(pin);
	pthread_mutex_unlock(&pins_lock);
}

/*
 * Pins the job's part, and maps each of its pages if the program flushes, so that stores take no page faults.
 * Before msync() that would only make each page dirty once more, in the mapping of each thread.
 */
static int dax_prepare(struct thread_data *td, struct fio_file *f, struct dax_mapping *map)
{
	const struct dax_options *o = td->eo;
	size_t lead = f->file_offset & page_mask;
	char *part = map->start + f->file_offset - lead;
	int err = o->pin ? dax_pin(f, map) : 0;

	if (err == ENOTTY)
		err = mlock(part, f->io_size + lead) ? errno : 0;
	if (err) {
		td_verror(td, err, "dax_pin");
		return 1;
	}
	if (by_fence(o) && td_write(td) && madvise(part, f->io_size + lead, MADV_POPULATE_WRITE)) {
		td_verror(td, errno, "MADV_POPULATE_WRITE");
		return 1;
	}
	return 0;
}

/* A lock ends with its mapping. */
static void dax_unmap(struct dax_mapping *map)
{
	munmap(map->start, map->size);
	if (map->pin)
		dax_unpin(map->pin);
}

static int dax_map(struct thread_data *td, struct fio_file *f, struct dax_mapping *map)
{
	const struct dax_options *o = td->eo;
	int flags = o->dax ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
	int prot = td_write(td) ? PROT_READ | PROT_WRITE : PROT_READ;
	int err;

	map->size = f->real_file_size;
	map->start = mmap(NULL, map->size, prot, flags, f->fd, 0);
	if (map->start == MAP_FAILED) {
		td_verror(td, errno, o->dax ? "mmap with MAP_SYNC" : "mmap");
		return 1;
	}
	err = dax_prepare(td, f, map);
	if (err)
		dax_unmap(map);
	return err;
}

static int dax_open(struct thread_data *td, struct fio_file *f)
{
	struct dax_mapping *map = calloc(1, sizeof(*map));

	if (!map) {
		td_verror(td, ENOMEM, "calloc");
		return 1;
	}
	if (generic_open_file(td, f)) {
		free(map);
		return 1;
	}
	if (dax_map(td, f, map)) {
		free(map);
		return generic_close_file(td, f) ?: 1;
	}
	FILE_SET_ENG_DATA(f, map);
	return 0;
}

static int dax_close(struct thread_data *td, struct fio_file *f)
{
	struct dax_mapping *map = FILE_ENG_DATA(f);

	dax_unmap(map);
	free(map);
	FILE_SET_ENG_DATA(f, NULL);
	return generic_close_file(td, f);
}

static int dax_sync(struct thread_data *td, const struct dax_mapping *map)
{
	if (by_fence(td->eo))
		pmem_drain();
	else if (msync(map->start, map->size, MS_SYNC))
		return errno;
	return 0;
}

static int dax_write(struct thread_data *td, const struct dax_mapping *map, const struct io_u *io_u)
{
	char *to = map->start + io_u->offset;

	if (by_fence(td->eo))
		pmem_memcpy(to, io_u->xfer_buf, io_u->xfer_buflen, PMEM_F_MEM_NODRAIN);
	else
		memcpy(to, io_u->xfer_buf, io_u->xfer_buflen);
	return td->o.sync_io ? dax_sync(td, map) : 0;
}

static enum fio_q_status dax_queue(struct thread_data *td, struct io_u *io_u)
{
	const struct dax_mapping *map = FILE_ENG_DATA(io_u->file);

	fio_ro_check(td, io_u);
	if (io_u->ddir == DDIR_READ)
		memcpy(io_u->xfer_buf, map->start + io_u->offset, io_u->xfer_buflen);
	else if (io_u->ddir == DDIR_WRITE)
		io_u->error = dax_write(td, map, io_u);
	else if (ddir_sync(io_u->ddir))
		io_u->error = dax_sync(td, map);
	else
		io_u->error = EINVAL;
	if (io_u->error)
		td_verror(td, io_u->error, "dax_queue");
	return FIO_Q_COMPLETED;
}

/* fio looks for an external engine by this name. */
struct ioengine_ops ioengine = {
	.name = "fio-dax",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_SYNCIO | FIO_NOEXTEND | FIO_NODISKUTIL,
	.queue = dax_queue,
	.open_file = dax_open,
	.close_file = dax_close,
	.get_file_size = dax_get_file_size,
	.options = options,
	.option_struct_size = sizeof(struct dax_options),
};

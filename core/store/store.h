/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page store: persistent pages of files, found again after a crash.
 *
 * This is the only code that writes a cache device's metadata. Core functions don't sleep, lock or
 * allocate: callers do all allocation and locking in DRAM. A caller lets only one thread change a
 * record at a time. Different records may be changed concurrently.
 *
 * Adding a page (any number at once, one fence for each step):
 *	ps_page_write() or the caller's own non-temporal copy + ps_page_flush()
 *	ps_page_prepare()	records the owner; not yet valid
 *	ps_fence()
 *	ps_page_commit()	valid
 *	ps_fence()		the sync call may be acknowledged after this
 * ps_pages_commit() does the last three for a batch.
 *
 * Changing a page in place: a clean page is first set OUT_OF_SYNC and fenced; then write, flush, fence.
 *
 * Freeing a page: ps_page_free(), ps_fence(); its bytes may be overwritten only after that.
 * ps_pages_free() does both for a batch. A page whose file record was freed (-ESTALE) may be
 * overwritten at once.
 */
#ifndef FOREBAY_CORE_STORE_STORE_H
#define FOREBAY_CORE_STORE_STORE_H

#include "format.h"

enum ps_file_state { PS_FILE_FREE = 0, PS_FILE_LIVE = 1, PS_FILE_UNLINKED = 2 };
enum ps_page_state { PS_PAGE_FREE = 0, PS_PAGE_OUT_OF_SYNC = 1, PS_PAGE_CLEAN = 2 };

/* A lower file's identity across boots, as exportfs encodes it. */
struct ps_handle {
	u8	type;
	u8	len;
	u8	bytes[PS_HANDLE_MAX];
};

/* An open store. Set by ps_open(); read-only to callers. */
struct ps {
	u8	*base;
	u64	size;
	bool	flush_caches;	/* the persistence domain is the memory controller */
	u32	nr_files;
	u32	nr_pages;
	struct ps_file_onmedia *files;
	struct ps_page_onmedia *pages;
	void	*names;		/* region of the name log; NULL: the store has none */
	u64	names_size;	/* bytes; 0: the same */
	u8	*data;
	struct ps_super_onmedia super;	/* the copy that counts */
	u32	repaired;		/* bit i: copy i was damaged and has been rewritten */
};

/*
 * Makes an empty name log in a region of @size bytes, durably. False: it can't. The page store doesn't
 * know the name log, so the caller of ps_format() names the function that does.
 */
typedef bool (*ps_names_fn)(void *region, u64 size, const void *arg);

struct ps_format_options {
	u8	cache_uuid[PS_UUID_SIZE];
	u32	nr_files;		/* 0: chosen from the size */
	u64	names_size;		/* of the name log, in bytes, whole pages; 0: the store has none */
	ps_names_fn make_names;		/* called if there is one, while no superblock copy is valid */
	const void *names_arg;		/* passed to it */
};

struct ps_file_info {
	enum ps_file_state state;
	u32	generation;
	u64	size;
	s64	time;
	struct ps_handle handle;
};

struct ps_page_info {
	enum ps_page_state state;
	u32	file;
	u64	index;
};

/* Flags of ps_open(). */
#define PS_OPEN_READ_ONLY	1	/* write nothing, don't repair a superblock copy */
#define PS_OPEN_FLUSH_CACHES	2	/* sets ps->flush_caches */

/* Minimum size of a device for ps_format(), in bytes. */
#define PS_MIN_SIZE		(4u << 20)

/* Results of ps_open(); ps_strerror() has a sentence for each. */
enum ps_error {
	PS_OK = 0,
	PS_E_TOO_SMALL,		/* device is below PS_MIN_SIZE */
	PS_E_NOT_FORMATTED,	/* both copies are blank (all zero) */
	PS_E_FOREIGN,		/* a superblock page holds foreign data */
	PS_E_WRITELOG,		/* a log of dm-forebay-writelog */
	PS_E_CORRUPT,		/* ours, but no copy is valid; also after an interrupted format */
	PS_E_VERSION,		/* made by a newer Forebay */
	PS_E_GEOMETRY,		/* layout reaches beyond the device or overlaps */
	PS_E_NAMES,		/* only ps_format(): the name log could not be made */
};

enum ps_error ps_format_fits(u64 size, const struct ps_format_options *opt);
enum ps_error ps_format(void *base, u64 size, const struct ps_format_options *opt);
enum ps_error ps_open(struct ps *ps, void *base, u64 size, u32 flags);
const char *ps_strerror(enum ps_error err);

/* Reads one copy as it is on the device. False: not valid. For core/ itself. */
bool ps_super_read(void *base, u32 copy, struct ps_super_onmedia *s);

/* Binding to a lower directory. ps_bind() is durable on return. */
bool ps_is_bound(const struct ps *ps);
bool ps_bound_to(const struct ps *ps, const u8 lower_uuid[PS_UUID_SIZE],
		 const struct ps_handle *root);
void ps_bind(struct ps *ps, const u8 lower_uuid[PS_UUID_SIZE], const struct ps_handle *root);
void ps_unbind(struct ps *ps);

/*
 * File records. All but set_size and set_time are durable on return. -EIO of the set functions: the medium
 * has lost the record. Nothing was stored then, and ps_file_rewrite() heals it.
 */
u32 ps_file_create(struct ps *ps, u32 file, const struct ps_handle *handle, u64 size);
void ps_file_rewrite(struct ps *ps, u32 file, const struct ps_file_info *info);
/* LIVE <-> UNLINKED */
int ps_file_set_state(struct ps *ps, u32 file, enum ps_file_state state);
void ps_file_free(struct ps *ps, u32 file);
int ps_file_set_size(struct ps *ps, u32 file, u64 size);	/* durable after ps_fence() */
int ps_file_set_time(struct ps *ps, u32 file, s64 time);	/* durable after ps_fence() */
/* 0; -EUCLEAN: damaged */
int ps_file_read(const struct ps *ps, u32 file, struct ps_file_info *info);

/* Page records. Stores are flushed; durable, and ordered, after ps_fence(). */
void *ps_page_addr(const struct ps *ps, u32 page);
void ps_page_write(struct ps *ps, u32 page, u32 offset, const void *src, u32 len);
void ps_page_zero(struct ps *ps, u32 page, u32 offset, u32 len);
void ps_page_flush(struct ps *ps, u32 page, u32 offset, u32 len);
/* 0; -EIO: the medium has lost the record; -EUCLEAN: it has lost the file's record */
int ps_page_prepare(struct ps *ps, u32 page, u32 file, u64 index);
void ps_page_commit(struct ps *ps, u32 page, u32 file, u64 index, enum ps_page_state state);
/* OUT_OF_SYNC <-> CLEAN. 0; -EIO: the medium has lost the record */
int ps_page_set_state(struct ps *ps, u32 page, enum ps_page_state state);
void ps_page_free(struct ps *ps, u32 page);
/* 0; -ESTALE: the file record was freed, so the page is free; -EUCLEAN: damaged */
int ps_page_read(const struct ps *ps, u32 page, struct ps_page_info *info);
void ps_fence(struct ps *ps);

/* Batches; durable on return. All moves of pages use these functions. */
struct ps_move {
	u64 index;		/* page of the file */
	u32 file;
	u32 page;		/* its data is written and flushed, its record prepared */
};

void ps_pages_commit(struct ps *ps, const struct ps_move *moves, u32 n, enum ps_page_state state);
void ps_pages_free(struct ps *ps, const u32 *pages, u32 n);

/*
 * Check: calls @report for every inconsistency, and returns their number. @scratch is an array of
 * ps->nr_pages numbers (nr_files is never larger).
 */
typedef void (*ps_report_fn)(void *arg, const char *what, u64 number, const char *why);
u64 ps_check(const struct ps *ps, u32 *scratch, ps_report_fn report, void *arg);

/* Repair: frees a damaged file record, and all pages that name it. Durable on return. */
void ps_file_purge(struct ps *ps, u32 file);

#endif

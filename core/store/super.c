// SPDX-License-Identifier: GPL-2.0-only
/*
 * The superblock: formatting a device, opening a store, binding it to a lower directory.
 *
 * Invariants:
 *   - while a store exists, at least one copy of its superblock is valid: an
 *     update fences one copy before it changes the other;
 *   - no copy is valid while the tables or the name log are not: ps_format()
 *     breaks both copies, zeroes the tables, makes the name log and writes the
 *     new copies, a fence after each of the four;
 *   - nothing on the device is used before its checksum and its geometry
 *     have been verified.
 *
 * file.c and page.c have the records behind the superblock.
 */
#include "../pm/supers.h"
#include "store.h"

static_assert(sizeof(struct ps_super_onmedia) == 168);
static_assert(PS_SUPER_PLAIN_SIZE == 144);
static_assert(offsetof(struct ps_super_onmedia, cache_uuid) == sizeof(struct super_head_onmedia));
static_assert(PS_NR_SUPERS * PS_PAGE_SIZE == SUPERS_SIZE);

#define HUGE_ALIGN	(2u << 20)
#define HUGE_MIN_SIZE	(64u << 20)	/* below this, aligning the data wastes too much */
#define MIN_FILES	1024u
#define PAGES_PER_FILE	16

static const struct super_kind kind = {
	.magic = PS_MAGIC,
	.other_magic = WL_MAGIC,
	.size = sizeof(struct ps_super_onmedia),
	.crc_size = PS_SUPER_PLAIN_SIZE,
};

static bool has_names(const struct ps_super_onmedia *s)
{
	return le32_to_cpu(s->version) != PS_VERSION_PLAIN;
}

/*
 * The fields of version 2 have a checksum of their own: that of version 1 keeps its range. The UUID ties
 * them to the other fields of the copy. No update of a superblock changes any of these.
 */
static __le32 names_crc(const struct ps_super_onmedia *s)
{
	u32 crc = crc32c(~0u, s->cache_uuid, PS_UUID_SIZE);

	crc = crc32c(crc, &s->names, sizeof(s->names));
	return cpu_to_le32(~crc32c(crc, &s->names_size, sizeof(s->names_size)));
}

/* Of a version that is newer than this code, nothing behind the fields of version 1 is verified. */
static bool names_whole(const struct ps_super_onmedia *s)
{
	return le32_to_cpu(s->version) != PS_VERSION || s->names_crc == names_crc(s);
}

/**
 * ps_super_read - read and verify one superblock copy
 * @base: start of the device's memory
 * @copy: 0 or 1
 * @s: the copy, valid or not
 *
 * Context: Any.
 * Return: true if the copy is valid; its version and geometry may still be unacceptable.
 */
bool ps_super_read(void *base, u32 copy, struct ps_super_onmedia *s)
{
	if (!super_read(&kind, base, copy, s) || le32_to_cpu(s->root_type) > 0xff ||
	    le32_to_cpu(s->root_len) > PS_HANDLE_MAX)
		return false;
	if (!has_names(s))
		memset((u8 *)s + PS_SUPER_PLAIN_SIZE, 0, sizeof(*s) - PS_SUPER_PLAIN_SIZE);
	return names_whole(s);
}

/* True if @nr records of @size bytes at @start end at or before @end, without overflow. */
static bool fits(u64 start, u64 nr, u32 size, u64 end)
{
	return start % PS_PAGE_SIZE == 0 && start <= end && nr <= (end - start) / size;
}

/* The name log lies between the page table and the data. */
static bool names_valid(const struct ps_super_onmedia *s)
{
	u64 size = le64_to_cpu(s->names_size);

	return !has_names(s) || (size && size % PS_PAGE_SIZE == 0 &&
	       fits(le64_to_cpu(s->names), size / PS_PAGE_SIZE, PS_PAGE_SIZE, le64_to_cpu(s->data)));
}

static bool geometry_valid(const struct ps_super_onmedia *s, u64 size)
{
	u64 nr_files = le64_to_cpu(s->nr_files);
	u64 nr_pages = le64_to_cpu(s->nr_pages);
	u64 file_table = le64_to_cpu(s->file_table);
	u64 page_table = le64_to_cpu(s->page_table);
	u64 data = le64_to_cpu(s->data);
	u64 end = le64_to_cpu(s->device_size);
	u64 tables_end = has_names(s) ? le64_to_cpu(s->names) : data;

	return end <= size && nr_files && nr_files <= PS_MAX_FILES &&
	       nr_pages >= nr_files && nr_pages <= PS_MAX_PAGES && file_table >= SUPERS_SIZE &&
	       fits(file_table, nr_files, sizeof(struct ps_file_onmedia), page_table) &&
	       fits(page_table, nr_pages, sizeof(struct ps_page_onmedia), tables_end) &&
	       names_valid(s) && fits(data, nr_pages, PS_PAGE_SIZE, end);
}

static u64 round_up_to(u64 value, u64 align)
{
	return (value + align - 1) & ~(align - 1);
}

/* Number of file records for tables and data of @size bytes. */
static u64 choose_files(u64 size)
{
	u64 nr_files = max_t(u64, size / PS_PAGE_SIZE / PAGES_PER_FILE, MIN_FILES);

	nr_files = min_t(u64, nr_files, PS_MAX_FILES);
	return min_t(u64, nr_files, size / PS_PAGE_SIZE / 2);
}

/* Chooses the layout of a device of @size bytes; its geometry may still be invalid. */
static void geometry_choose(struct ps_super_onmedia *s, u64 size, const struct ps_format_options *opt)
{
	u32 align = size >= HUGE_MIN_SIZE ? HUGE_ALIGN : PS_PAGE_SIZE;
	u64 nr_files, nr_pages, page_table, names, data, rest;

	if (opt->names_size > size)
		return;
	rest = size - opt->names_size;
	nr_files = opt->nr_files ?: choose_files(rest);
	page_table = round_up_to(SUPERS_SIZE + nr_files * sizeof(struct ps_file_onmedia),
				 PS_PAGE_SIZE);
	if (page_table > rest)
		return;
	nr_pages = (rest - page_table) / (PS_PAGE_SIZE + sizeof(struct ps_page_onmedia));
	nr_pages = min_t(u64, nr_pages, PS_MAX_PAGES);
	names = round_up_to(page_table + nr_pages * sizeof(struct ps_page_onmedia), PS_PAGE_SIZE);
	data = round_up_to(names + opt->names_size, align);
	if (data > size)
		return;
	/* The table keeps entries for the few pages that the alignment takes. */
	nr_pages = min_t(u64, nr_pages, (size - data) / PS_PAGE_SIZE);

	s->device_size = cpu_to_le64(size);
	s->nr_files = cpu_to_le64(nr_files);
	s->nr_pages = cpu_to_le64(nr_pages);
	s->file_table = cpu_to_le64(SUPERS_SIZE);
	s->page_table = cpu_to_le64(page_table);
	s->data = cpu_to_le64(data);
	if (!opt->names_size)
		return;
	s->names = cpu_to_le64(names);
	s->names_size = cpu_to_le64(opt->names_size);
}

/* Chooses the geometry of a new store. */
static enum ps_error geometry_make(struct ps_super_onmedia *s, u64 size, const struct ps_format_options *opt)
{
	*s = (struct ps_super_onmedia){
		.magic = cpu_to_le64(PS_MAGIC),
		.version = cpu_to_le32(opt->names_size ? PS_VERSION : PS_VERSION_PLAIN),
	};
	if (size < PS_MIN_SIZE)
		return PS_E_TOO_SMALL;
	geometry_choose(s, size, opt);
	return geometry_valid(s, size) ? PS_OK : PS_E_GEOMETRY;
}

/**
 * ps_format_fits - whether ps_format() would accept a size and options
 * @size: bytes
 * @opt: as for ps_format()
 *
 * Context: Any.
 * Return: PS_OK, PS_E_TOO_SMALL or PS_E_GEOMETRY, as ps_format() would return it.
 */
enum ps_error ps_format_fits(u64 size, const struct ps_format_options *opt)
{
	struct ps_super_onmedia s;

	return geometry_make(&s, size, opt);
}

/**
 * ps_format - make an empty store; overwrites what is on the device
 * @base: start of the device's memory, aligned to a page
 * @size: bytes
 * @opt: identity, number of file records if the caller chooses it, and the name log if there is one
 *
 * Durable on return. Takes time in proportion to the tables and the name log, not to the data.
 *
 * Context: Any, as far as @opt->make_names allows.
 * Return: PS_OK; PS_E_TOO_SMALL; PS_E_GEOMETRY: so many file records, or a name log of this size, don't
 * fit; PS_E_NAMES: the name log could not be made, and the device holds no valid store. After another
 * error nothing has been written.
 */
enum ps_error ps_format(void *base, u64 size, const struct ps_format_options *opt)
{
	struct ps_super_onmedia s;
	enum ps_error err = geometry_make(&s, size, opt);

	if (err)
		return err;
	memcpy(s.cache_uuid, opt->cache_uuid, PS_UUID_SIZE);
	if (has_names(&s))
		s.names_crc = names_crc(&s);

	supers_break(&kind, base);
	pm_zero((u8 *)base + SUPERS_SIZE, le64_to_cpu(s.data) - SUPERS_SIZE);
	pm_fence();
	if (has_names(&s) &&
	    !opt->make_names((u8 *)base + le64_to_cpu(s.names), opt->names_size, opt->names_arg))
		return PS_E_NAMES;
	supers_write_first(&kind, base, &s);
	return PS_OK;
}

/* Finds the copy that counts. *@best is set only if PS_OK is returned. */
static enum ps_error supers_choose(const struct ps_super_onmedia *s, const enum copy_state *state,
				   u32 *best)
{
	if (state[0] == COPY_FOREIGN || state[1] == COPY_FOREIGN)
		return PS_E_FOREIGN;
	if (state[0] == COPY_OTHER_KIND || state[1] == COPY_OTHER_KIND)
		return PS_E_WRITELOG;
	if (state[0] == COPY_BLANK && state[1] == COPY_BLANK)
		return PS_E_NOT_FORMATTED;
	if (state[0] != COPY_VALID && state[1] != COPY_VALID)
		return PS_E_CORRUPT;
	*best = supers_best(state, (const void *)&s[0], (const void *)&s[1]);
	return le32_to_cpu(s[*best].version) == PS_VERSION ||
	       le32_to_cpu(s[*best].version) == PS_VERSION_PLAIN ? PS_OK : PS_E_VERSION;
}

/**
 * ps_open - open the store on a device
 * @ps: set if PS_OK is returned
 * @base: start of the device's memory, aligned to a page
 * @size: bytes; may be more than the store was made for
 * @flags: PS_OPEN_*
 *
 * Rewrites a damaged superblock copy, unless PS_OPEN_READ_ONLY.
 *
 * Context: Any. Reads two pages, not the tables.
 * Return: PS_OK, or the reason why there is no store to open.
 */
enum ps_error ps_open(struct ps *ps, void *base, u64 size, u32 flags)
{
	struct ps_super_onmedia s[PS_NR_SUPERS];
	enum copy_state state[PS_NR_SUPERS];
	enum ps_error err;
	u32 best, copy;

	if (size < PS_MIN_SIZE)
		return PS_E_TOO_SMALL;
	for (copy = 0; copy < PS_NR_SUPERS; copy++)
		state[copy] = super_copy_state(&kind, base, copy,
					       ps_super_read(base, copy, &s[copy]));
	err = supers_choose(s, state, &best);
	if (err)
		return err;
	if (!geometry_valid(&s[best], size))
		return PS_E_GEOMETRY;

	*ps = (struct ps){
		.base = base,
		.size = size,
		.flush_caches = flags & PS_OPEN_FLUSH_CACHES,
		.nr_files = le64_to_cpu(s[best].nr_files),
		.nr_pages = le64_to_cpu(s[best].nr_pages),
		.files = (void *)((u8 *)base + le64_to_cpu(s[best].file_table)),
		.pages = (void *)((u8 *)base + le64_to_cpu(s[best].page_table)),
		.data = (u8 *)base + le64_to_cpu(s[best].data),
		.super = s[best],
	};
	if (has_names(&ps->super)) {
		ps->names = (u8 *)base + le64_to_cpu(ps->super.names);
		ps->names_size = le64_to_cpu(ps->super.names_size);
	}
	if (!(flags & PS_OPEN_READ_ONLY))
		ps->repaired = supers_repair(&kind, base, state, &ps->super);
	return PS_OK;
}

/**
 * ps_strerror - describe a result of ps_open() or ps_format() to an administrator
 * @err: the result
 *
 * Return: a sentence without the full stop; never NULL.
 */
const char *ps_strerror(enum ps_error err)
{
	switch (err) {
	case PS_OK:
		return "no error";
	case PS_E_TOO_SMALL:
		return "the device is too small: a cache needs at least 4 MiB";
	case PS_E_NOT_FORMATTED:
		return "the device is not formatted: run 'forebay format' first";
	case PS_E_FOREIGN:
		return "the device holds something that is not a Forebay cache";
	case PS_E_WRITELOG:
		return "the device is a write log of forebay-writelog, not a cache";
	case PS_E_CORRUPT:
		return "both superblocks are damaged, or formatting was cut short";
	case PS_E_VERSION:
		return "the cache was made by a newer version of Forebay";
	case PS_E_GEOMETRY:
		return "the cache's layout does not fit the device";
	case PS_E_NAMES:
		return "the name log could not be made";
	}
	return "unknown error";
}

/**
 * ps_is_bound - whether the store belongs to a lower directory
 * @ps: store
 *
 * Context: Any.
 * Return: true if ps_bind() was called after ps_format() and ps_unbind().
 */
bool ps_is_bound(const struct ps *ps)
{
	return ps->super.root_len || memchr_inv(ps->super.lower_uuid, 0, PS_UUID_SIZE);
}

/**
 * ps_bound_to - whether the store belongs to this lower directory
 * @ps: store
 * @lower_uuid: of the lower file system
 * @root: handle of the directory
 *
 * Context: Any.
 * Return: true if it is bound to this directory.
 */
bool ps_bound_to(const struct ps *ps, const u8 lower_uuid[PS_UUID_SIZE],
		 const struct ps_handle *root)
{
	const struct ps_super_onmedia *s = &ps->super;

	return ps_is_bound(ps) && !memcmp(s->lower_uuid, lower_uuid, PS_UUID_SIZE) &&
	       le32_to_cpu(s->root_type) == root->type && le32_to_cpu(s->root_len) == root->len &&
	       !memcmp(s->root_handle, root->bytes, root->len);
}

/* Makes @s the newest superblock. */
static void super_update(struct ps *ps, struct ps_super_onmedia *s)
{
	supers_update(&kind, ps->base, s);
	ps->super = *s;
}

/**
 * ps_bind - set the lower directory that the store belongs to
 * @ps: store, not opened read-only
 * @lower_uuid: of the lower file system
 * @root: handle of the directory; @root->len is at most PS_HANDLE_MAX
 *
 * Durable on return.
 *
 * Context: Any; the caller excludes others from the superblock.
 */
void ps_bind(struct ps *ps, const u8 lower_uuid[PS_UUID_SIZE], const struct ps_handle *root)
{
	struct ps_super_onmedia s = ps->super;

	memcpy(s.lower_uuid, lower_uuid, PS_UUID_SIZE);
	s.root_type = cpu_to_le32(root->type);
	s.root_len = cpu_to_le32(root->len);
	memset(s.root_handle, 0, sizeof(s.root_handle));
	memcpy(s.root_handle, root->bytes, root->len);
	super_update(ps, &s);
}

/**
 * ps_unbind - release the store from its lower directory
 * @ps: store, not opened read-only
 *
 * Durable on return. The records stay; the caller has freed them before.
 *
 * Context: Any; the caller excludes others from the superblock.
 */
void ps_unbind(struct ps *ps)
{
	struct ps_super_onmedia s = ps->super;

	memset(s.lower_uuid, 0, sizeof(s.lower_uuid));
	s.root_type = 0;
	s.root_len = 0;
	memset(s.root_handle, 0, sizeof(s.root_handle));
	super_update(ps, &s);
}

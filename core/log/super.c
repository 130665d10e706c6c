// SPDX-License-Identifier: GPL-2.0-only
/*
 * The superblock of a write log: formatting a device, opening a log, binding it to an origin.
 *
 * Invariants, besides those of pm/supers.h:
 *   - no copy is valid while the table and the chunks' words are not: wl_format()
 *     breaks both copies, zeroes those and writes the new copies, a fence after
 *     each of the three;
 *   - no geometry is used before it has been found to lie inside the device.
 *
 * gen.c has the generations behind the superblock.
 */
#include "../pm/supers.h"
#include "layout.h"

static_assert(sizeof(struct wl_super_onmedia) == 160);
static_assert(sizeof(struct wl_super_onmedia) <= SUPER_MAX_SIZE);
static_assert(offsetof(struct wl_super_onmedia, uuid) == sizeof(struct super_head_onmedia));
static_assert(WL_NR_SUPERS * WL_PAGE_SIZE == SUPERS_SIZE);

#define HUGE_ALIGN	(2u << 20)
#define HUGE_MIN_SIZE	(64u << 20)	/* below this, aligning the data wastes too much */
#define DEFAULT_GENS	16u
#define MIN_GENS	4u		/* minimum, where they are chosen here */
#define MIN_GEN_SIZE	(1u << 20)
#define DEFAULT_CHUNKS	32u
#define MIN_CHUNK_SIZE	(64u << 10)	/* likewise */
#define LARGEST_CHUNK	(2u << 20)
#define READ_ATTEMPTS	8u		/* readings of the superblocks before both count as damaged */

static const struct super_kind kind = {
	.magic = WL_MAGIC,
	.other_magic = PS_MAGIC,
	.size = sizeof(struct wl_super_onmedia),
	.crc_size = sizeof(struct wl_super_onmedia),
};

/**
 * wl_super_read - read and verify one superblock copy
 * @base: start of the device's memory
 * @copy: 0 or 1
 * @s: the copy, valid or not
 *
 * Context: Any.
 * Return: true if the copy is valid; its version and geometry may still be unacceptable.
 */
bool wl_super_read(void *base, u32 copy, struct wl_super_onmedia *s)
{
	return super_read(&kind, base, copy, s);
}

static bool power_of_2(u32 value)
{
	return value && !(value & (value - 1));
}

static bool geometry_valid(const struct wl_super_onmedia *s, u64 size)
{
	u32 nr_gens = le32_to_cpu(s->nr_generations), nr_chunks = le32_to_cpu(s->nr_chunks);
	u32 chunk_size = le32_to_cpu(s->chunk_size), align = le32_to_cpu(s->align);
	u64 table = le64_to_cpu(s->table), data = le64_to_cpu(s->data);
	u64 end = le64_to_cpu(s->device_size);

	if (!nr_gens || nr_gens > WL_MAX_GENERATIONS || !nr_chunks || nr_chunks > WL_MAX_CHUNKS ||
	    chunk_size < WL_MIN_CHUNK_SIZE || chunk_size > WL_MAX_CHUNK_SIZE ||
	    chunk_size % WL_PAGE_SIZE || (u64)nr_chunks * chunk_size > WL_MAX_GEN_SIZE)
		return false;
	return power_of_2(align) && align >= WL_DATA_ALIGN && align <= WL_PAGE_SIZE &&
	       end <= size && table >= SUPERS_SIZE && table % WL_PAGE_SIZE == 0 &&
	       data % WL_PAGE_SIZE == 0 && table <= data && data <= end &&
	       nr_gens * sizeof(struct wl_gen_onmedia) <= data - table &&
	       (u64)nr_gens * nr_chunks * chunk_size <= end - data;
}

static u32 clamp_to(u64 value, u32 min, u32 max)
{
	value = max_t(u64, value, min);
	return min_t(u64, value, max);
}

/* Chooses the number of generations: a few, and enough to use all of the device. */
static u32 gens_choose(u64 size, const struct wl_format_options *opt)
{
	u64 chunks = opt->nr_chunks ?: WL_MAX_CHUNKS;
	u64 largest = min_t(u64, WL_MAX_GEN_SIZE, chunks * (opt->chunk_size ?: LARGEST_CHUNK));
	u32 min_gens = clamp_to(size / MIN_GEN_SIZE, MIN_GENS, DEFAULT_GENS);

	return clamp_to((size + largest - 1) / largest, min_gens, WL_MAX_GENERATIONS);
}

/* Chooses the layout of a device of @size bytes; its geometry may still be invalid. */
static void geometry_choose(struct wl_super_onmedia *s, u64 size,
			    const struct wl_format_options *opt)
{
	u32 chunk_size = opt->chunk_size, align = size >= HUGE_MIN_SIZE ? HUGE_ALIGN : WL_PAGE_SIZE;
	u32 nr_gens = opt->nr_gens ?: gens_choose(size, opt);
	u64 data = wl_round_up(SUPERS_SIZE + (u64)nr_gens * sizeof(struct wl_gen_onmedia), align);
	u64 gen_size = data < size ? (size - data) / nr_gens : 0;

	if (!chunk_size)
		chunk_size = clamp_to(gen_size / (opt->nr_chunks ?: DEFAULT_CHUNKS), MIN_CHUNK_SIZE,
				      LARGEST_CHUNK) & ~(WL_PAGE_SIZE - 1);
	gen_size = min_t(u64, gen_size, WL_MAX_GEN_SIZE);
	s->device_size = cpu_to_le64(size);
	s->table = cpu_to_le64(SUPERS_SIZE);
	s->data = cpu_to_le64(data);
	s->nr_generations = cpu_to_le32(nr_gens);
	s->nr_chunks = cpu_to_le32(opt->nr_chunks ?:
				   min_t(u64, gen_size / chunk_size, WL_MAX_CHUNKS));
	s->chunk_size = cpu_to_le32(chunk_size);
	s->align = cpu_to_le32(opt->align ?: WL_PAGE_SIZE);
}

/* Sets the fields of an open log from its superblock. */
static void fill_in(struct wl *wl, void *base, const struct wl_super_onmedia *s)
{
	*wl = (struct wl){
		.base = base,
		.size = le64_to_cpu(s->device_size),
		.data_crc = le32_to_cpu(s->flags) & WL_SUPER_DATA_CRC,
		.nr_gens = le32_to_cpu(s->nr_generations),
		.nr_chunks = le32_to_cpu(s->nr_chunks),
		.chunk_size = le32_to_cpu(s->chunk_size),
		.align = le32_to_cpu(s->align),
		.seed = crc32c(~0u, s->uuid, WL_UUID_SIZE),
		.gens = (void *)((u8 *)base + le64_to_cpu(s->table)),
		.data = (u8 *)base + le64_to_cpu(s->data),
		.super = *s,
	};
}

static void zero_words(const struct wl *wl)
{
	u32 gen, chunk;

	pm_zero(wl->gens, wl->nr_gens * sizeof(*wl->gens));
	for (gen = 0; gen < wl->nr_gens; gen++)
		for (chunk = 0; chunk < wl->nr_chunks; chunk++)
			pm_zero(wl_chunk_header(wl, gen, chunk), sizeof(struct wl_chunk_onmedia));
	pm_fence();
}

/* Chooses the geometry of a new log. */
static enum wl_error geometry_make(struct wl_super_onmedia *s, u64 size, const struct wl_format_options *opt)
{
	*s = (struct wl_super_onmedia){
		.magic = cpu_to_le64(WL_MAGIC),
		.version = cpu_to_le32(WL_VERSION),
		.flags = cpu_to_le32(opt->data_crc ? WL_SUPER_DATA_CRC : 0),
	};
	if (size < WL_MIN_SIZE)
		return WL_E_TOO_SMALL;
	geometry_choose(s, size, opt);
	return geometry_valid(s, size) ? WL_OK : WL_E_GEOMETRY;
}

/**
 * wl_format_fits - whether wl_format() would accept a size and options
 * @size: bytes
 * @opt: as for wl_format()
 *
 * Context: Any.
 * Return: WL_OK, WL_E_TOO_SMALL or WL_E_GEOMETRY, as wl_format() would return it.
 */
enum wl_error wl_format_fits(u64 size, const struct wl_format_options *opt)
{
	struct wl_super_onmedia s;

	return geometry_make(&s, size, opt);
}

/**
 * wl_format - make an empty log; overwrites what is on the device
 * @base: start of the device's memory, aligned to a page
 * @size: bytes
 * @opt: identity, and geometry where the caller chooses it
 *
 * Durable on return. Takes time in proportion to the number of chunks.
 *
 * Context: Any.
 * Return: WL_OK; WL_E_TOO_SMALL; WL_E_GEOMETRY: the options don't fit. After an error nothing has been
 * written.
 */
enum wl_error wl_format(void *base, u64 size, const struct wl_format_options *opt)
{
	struct wl_super_onmedia s;
	enum wl_error err = geometry_make(&s, size, opt);
	struct wl wl;

	if (err)
		return err;
	memcpy(s.uuid, opt->uuid, WL_UUID_SIZE);
	fill_in(&wl, base, &s);

	supers_break(&kind, base);
	zero_words(&wl);
	supers_write_first(&kind, base, &s);
	return WL_OK;
}

/* Finds the copy that counts. *@best is set only if WL_OK is returned. */
static enum wl_error supers_choose(const struct wl_super_onmedia *s, const enum copy_state *state,
				   u32 *best)
{
	if (state[0] == COPY_FOREIGN || state[1] == COPY_FOREIGN)
		return WL_E_FOREIGN;
	if (state[0] == COPY_OTHER_KIND || state[1] == COPY_OTHER_KIND)
		return WL_E_PAGESTORE;
	if (state[0] == COPY_BLANK && state[1] == COPY_BLANK)
		return WL_E_NOT_FORMATTED;
	if (state[0] != COPY_VALID && state[1] != COPY_VALID)
		return WL_E_CORRUPT;
	*best = supers_best(state, (const void *)&s[0], (const void *)&s[1]);
	if (le32_to_cpu(s[*best].version) != WL_VERSION ||
	    le32_to_cpu(s[*best].flags) & ~WL_SUPER_FLAGS)
		return WL_E_VERSION;
	return WL_OK;
}

/*
 * Reads both copies and finds the one that counts.
 *
 * Another user of the log may update the superblock meanwhile (WL_OPEN_READ_ONLY). It writes one copy after
 * the other. So a reader that has found both copies half written finds a whole one when it reads again,
 * unless yet another update overtakes it.
 */
static enum wl_error supers_load(void *base, struct wl_super_onmedia *s, enum copy_state *state, u32 *best)
{
	enum wl_error err;
	u32 attempt = 0, copy;

	do {
		for (copy = 0; copy < WL_NR_SUPERS; copy++)
			state[copy] = super_copy_state(&kind, base, copy,
						       wl_super_read(base, copy, &s[copy]));
		err = supers_choose(s, state, best);
	} while (err == WL_E_CORRUPT && ++attempt < READ_ATTEMPTS);
	return err;
}

/**
 * wl_open - open the log on a device
 * @wl: set if WL_OK is returned
 * @base: start of the device's memory, aligned to a page
 * @size: bytes; may be more than the log was made for
 * @flags: WL_OPEN_*
 *
 * Rewrites a damaged superblock copy, unless WL_OPEN_READ_ONLY.
 *
 * Context: Any; concurrent with a user of the log if WL_OPEN_READ_ONLY. Reads two pages, not the entries.
 * Return: WL_OK, or the reason why there is no log to open.
 */
enum wl_error wl_open(struct wl *wl, void *base, u64 size, u32 flags)
{
	struct wl_super_onmedia s[WL_NR_SUPERS];
	enum copy_state state[WL_NR_SUPERS];
	enum wl_error err;
	u32 best;

	if (size < WL_MIN_SIZE)
		return WL_E_TOO_SMALL;
	err = supers_load(base, s, state, &best);
	if (err)
		return err;
	if (!geometry_valid(&s[best], size))
		return WL_E_GEOMETRY;
	fill_in(wl, base, &s[best]);
	wl->flush_caches = flags & WL_OPEN_FLUSH_CACHES;
	if (!(flags & WL_OPEN_READ_ONLY))
		wl->repaired = supers_repair(&kind, base, state, &wl->super);
	return WL_OK;
}

/**
 * wl_strerror - describe a result of wl_open() or wl_format() to an administrator
 * @err: the result
 *
 * Return: a sentence without the full stop; never NULL.
 */
const char *wl_strerror(enum wl_error err)
{
	switch (err) {
	case WL_OK:
		return "no error";
	case WL_E_TOO_SMALL:
		return "the device is too small: a write log needs at least 1 MiB";
	case WL_E_NOT_FORMATTED:
		return "the device is not formatted: run 'forebay writelog format' first";
	case WL_E_PAGESTORE:
		return "the device is a cache of the forebay file system, not a write log";
	case WL_E_FOREIGN:
		return "the device holds something that is not a Forebay write log";
	case WL_E_CORRUPT:
		return "both superblocks are damaged, or formatting was cut short";
	case WL_E_VERSION:
		return "the write log was made by a newer version of Forebay";
	case WL_E_GEOMETRY:
		return "the write log's layout does not fit the device";
	}
	return "unknown error";
}

/**
 * wl_is_bound - whether the log belongs to an origin
 * @wl: log
 *
 * Context: Any.
 * Return: true if wl_bind() was called after wl_format() and wl_unbind().
 */
bool wl_is_bound(const struct wl *wl)
{
	return wl->super.origin_sectors;
}

/**
 * wl_bind - set the origin that the entries of a log belong to
 * @wl: log, not opened read-only
 * @origin_sectors: its size, not 0; an origin may grow, and be bound again
 * @origin_id: a name that stays with the device, padded with zeros; all zero:
 *	none is known
 *
 * Clears the fingerprint. Durable on return.
 *
 * Context: Any; the caller excludes others from the superblock.
 */
void wl_bind(struct wl *wl, u64 origin_sectors, const u8 origin_id[WL_ORIGIN_ID_SIZE])
{
	wl->super.origin_sectors = cpu_to_le64(origin_sectors);
	memcpy(wl->super.origin_id, origin_id, WL_ORIGIN_ID_SIZE);
	wl_fingerprint_set(wl, WL_FINGERPRINT_NONE);
}

/**
 * wl_bound_to - whether the log belongs to this origin
 * @wl: log, bound
 * @origin_id: as in wl_bind()
 *
 * Context: Any.
 * Return: false if both names are known and differ.
 */
bool wl_bound_to(const struct wl *wl, const u8 origin_id[WL_ORIGIN_ID_SIZE])
{
	return !memchr_inv(origin_id, 0, WL_ORIGIN_ID_SIZE) ||
	       !memchr_inv(wl->super.origin_id, 0, WL_ORIGIN_ID_SIZE) ||
	       !memcmp(wl->super.origin_id, origin_id, WL_ORIGIN_ID_SIZE);
}

/**
 * wl_unbind - release the log from its origin
 * @wl: log, not opened read-only; all its generations are free
 *
 * Durable on return.
 *
 * Context: Any; the caller excludes others from the superblock.
 */
void wl_unbind(struct wl *wl)
{
	wl->super.origin_sectors = 0;
	memset(wl->super.origin_id, 0, WL_ORIGIN_ID_SIZE);
	wl_fingerprint_set(wl, WL_FINGERPRINT_NONE);
}

/**
 * wl_fingerprint - the stored fingerprint of the origin
 * @wl: log
 *
 * Context: Any.
 * Return: a result of wl_fingerprint_of(), or WL_FINGERPRINT_NONE, _CHANGING.
 */
u32 wl_fingerprint(const struct wl *wl)
{
	return le32_to_cpu(wl->super.fingerprint);
}

/**
 * wl_fingerprint_set - store the fingerprint of the origin
 * @wl: log, not opened read-only
 * @fingerprint: of the origin's durable content; or WL_FINGERPRINT_CHANGING, before
 *	its blocks are changed; or WL_FINGERPRINT_NONE
 *
 * Durable on return.
 *
 * Context: Any; the caller excludes others from the superblock.
 */
void wl_fingerprint_set(struct wl *wl, u32 fingerprint)
{
	u32 flags = le32_to_cpu(wl->super.flags) & ~WL_SUPER_FINGERPRINT;

	if (fingerprint)
		flags |= WL_SUPER_FINGERPRINT;
	wl->super.flags = cpu_to_le32(flags);
	wl->super.fingerprint = cpu_to_le32(fingerprint);
	supers_update(&kind, wl->base, &wl->super);
}

/**
 * wl_fingerprint_blocks - how many blocks the fingerprint of an origin covers
 * @origin_sectors: the origin's size
 *
 * Context: Any.
 * Return: the number of whole blocks, WL_FINGERPRINT_BLOCKS at most.
 */
u32 wl_fingerprint_blocks(u64 origin_sectors)
{
	return min_t(u64, origin_sectors / (WL_PAGE_SIZE >> WL_SECTOR_SHIFT), WL_FINGERPRINT_BLOCKS);
}

/**
 * wl_fingerprint_block - checksum of a block of the origin
 * @wl: log
 * @block: WL_PAGE_SIZE bytes
 *
 * Context: Any.
 * Return: the checksum, for wl_fingerprint_of().
 */
__le32 wl_fingerprint_block(const struct wl *wl, const void *block)
{
	return cpu_to_le32(crc32c(wl->seed, block, WL_PAGE_SIZE));
}

/**
 * wl_fingerprint_of - the fingerprint of an origin
 * @wl: log
 * @blocks: from wl_fingerprint_block(), of the origin's first blocks
 * @nr_blocks: from wl_fingerprint_blocks()
 *
 * Context: Any.
 * Return: for wl_fingerprint_set(); WL_FINGERPRINT_NONE if there are no blocks.
 */
u32 wl_fingerprint_of(const struct wl *wl, const __le32 *blocks, u32 nr_blocks)
{
	u32 sum = crc32c(wl->seed, blocks, nr_blocks * sizeof(*blocks));

	if (!nr_blocks)
		return WL_FINGERPRINT_NONE;
	return max_t(u32, sum, WL_FINGERPRINT_CHANGING + 1);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A superblock in two copies: shared by the page store, the write log and the name log, which calls it a
 * header.
 *
 * Each copy begins with struct super_head_onmedia. The copies lie at the start of the first two pages, of the
 * device or of the name log's region. The other bytes of these pages are zero. The valid copy with the higher
 * sequence number counts.
 *
 * Invariants:
 *   - after a format has completed, at least one copy is valid: an update fences one copy before it
 *     changes the other;
 *   - no field is used before the checksum has been verified.
 *
 * The functions are inline because two kernel modules use them: one by store/super.c and names/super.c, the
 * other by log/super.c.
 */
#ifndef FOREBAY_CORE_PM_SUPERS_H
#define FOREBAY_CORE_PM_SUPERS_H

#include "env.h"

/* Each kind names the other one's superblock in its error. */
#define PS_MAGIC	0x0059414245524f46ULL	/* "FOREBAY\0": a page store */
#define WL_MAGIC	0x474f4c5942524f46ULL	/* "FORBYLOG": a write log */

#define SUPER_PAGE_SIZE	4096u
#define NR_SUPERS	2
#define SUPER_MAX_SIZE	256	/* of any kind's struct */
#define SUPER_LINE	64u	/* the smallest unit that a medium loses */
#define SUPERS_SIZE	(NR_SUPERS * SUPER_PAGE_SIZE)

/* The beginning of every version of each kind. */
struct super_head_onmedia {
	__le64	magic;
	__le32	version;
	__le32	crc;			/* crc32c of the first crc_size bytes of the struct with crc == 0 */
	__le64	seq;
};

struct super_kind {
	u64	magic;
	u64	other_magic;			/* magic of the other kind */
	u32	size;			/* bytes of the newest version's struct, head included */
	u32	crc_size;		/* bytes that crc covers, the same in all versions */
};

/* The content of one superblock page. */
enum copy_state { COPY_BLANK, COPY_FOREIGN, COPY_OTHER_KIND, COPY_BAD, COPY_VALID };

static inline void *super_at(void *base, u32 copy)
{
	return (u8 *)base + copy * SUPER_PAGE_SIZE;
}

static inline u32 super_crc(const struct super_kind *kind, const void *super)
{
	const u32 crc_end = offsetof(struct super_head_onmedia, crc) + sizeof(__le32);
	const __le32 no_crc = 0;
	u32 crc = crc32c(~0u, super, offsetof(struct super_head_onmedia, crc));

	crc = crc32c(crc, &no_crc, sizeof(no_crc));
	return ~crc32c(crc, (const u8 *)super + crc_end, kind->crc_size - crc_end);
}

/* Copies the page's struct to @super, valid or not. True: it is valid. */
static inline bool super_read(const struct super_kind *kind, void *base, u32 copy, void *super)
{
	const struct super_head_onmedia *head = super;

	return pm_read(super, super_at(base, copy), kind->size) &&
	       le64_to_cpu(head->magic) == kind->magic &&
	       le32_to_cpu(head->crc) == super_crc(kind, super);
}

/* True if bytes behind the struct in its page aren't zero. Unreadable bytes don't count. */
static inline bool super_rest_used(const struct super_kind *kind, void *base, u32 copy)
{
	u8 part[SUPER_MAX_SIZE];
	u32 offset, len;

	for (offset = kind->size; offset < SUPER_PAGE_SIZE; offset += len) {
		len = min_t(u32, sizeof(part), SUPER_PAGE_SIZE - offset);
		if (pm_read(part, (u8 *)super_at(base, copy) + offset, len) && memchr_inv(part, 0, len))
			return true;
	}
	return false;
}

/*
 * The rest of a superblock's page is zero. If it isn't, and there is no magic either, another program uses
 * the device, even if our other copy is valid. mkswap and mkfs.vfat, for example, leave copy B unchanged.
 */
static inline enum copy_state super_copy_state(const struct super_kind *kind, void *base, u32 copy,
					       bool whole)
{
	const struct super_head_onmedia *head;
	u8 part[SUPER_MAX_SIZE];
	bool readable;

	if (whole)
		return COPY_VALID;
	readable = pm_read(part, super_at(base, copy), kind->size);
	head = (const void *)part;
	if (readable && le64_to_cpu(head->magic) == kind->magic)
		return COPY_BAD;
	if (readable && le64_to_cpu(head->magic) == kind->other_magic)
		return COPY_OTHER_KIND;
	if (super_rest_used(kind, base, copy))
		return COPY_FOREIGN;
	return !readable || memchr_inv(part, 0, kind->size) ? COPY_BAD : COPY_BLANK;
}

/* Returns which copy counts; at least one is valid. */
static inline u32 supers_best(const enum copy_state *state, const struct super_head_onmedia *a,
			      const struct super_head_onmedia *b)
{
	if (state[0] == COPY_VALID && state[1] == COPY_VALID)
		return le64_to_cpu(b->seq) > le64_to_cpu(a->seq);
	return state[1] == COPY_VALID;
}

/*
 * Writes whole lines, which also heals lines that the medium has lost; zeros follow the struct. Durable
 * after a fence.
 */
static inline void super_write(const struct super_kind *kind, void *base, u32 copy, const void *super)
{
	u8 lines[SUPER_MAX_SIZE] = { };

	memcpy(lines, super, kind->size);
	pm_copy(super_at(base, copy), lines, (kind->size + SUPER_LINE - 1) & ~(SUPER_LINE - 1));
}

/*
 * Leaves both copies with our magic and a wrong checksum. A format that is interrupted after this
 * leaves a damaged store, not a valid one, and not a foreign device.
 */
static inline void supers_break(const struct super_kind *kind, void *base)
{
	const struct super_head_onmedia head = { .magic = cpu_to_le64(kind->magic) };
	u8 broken[SUPER_MAX_SIZE] = { };
	u32 copy;

	memcpy(broken, &head, sizeof(head));
	for (copy = 0; copy < NR_SUPERS; copy++) {
		u8 *at = super_at(base, copy);

		pm_copy(at, broken, kind->size);
		pm_zero(at + kind->size, SUPER_PAGE_SIZE - kind->size);
	}
	pm_fence();
}

/* Writes the first copies of a new superblock, durable on return. */
static inline void supers_write_first(const struct super_kind *kind, void *base, void *super)
{
	struct super_head_onmedia *head = super;
	u32 copy;

	head->seq = cpu_to_le64(1);
	head->crc = cpu_to_le32(super_crc(kind, super));
	for (copy = 0; copy < NR_SUPERS; copy++)
		super_write(kind, base, copy, super);
	pm_fence();
}

/* Sequence number of a copy; 0: the copy isn't valid. */
static inline u64 super_seq(const struct super_kind *kind, void *base, u32 copy)
{
	u8 super[SUPER_MAX_SIZE];
	const struct super_head_onmedia *head = (const void *)super;

	return super_read(kind, base, copy, super) ? le64_to_cpu(head->seq) : 0;
}

/* Makes @super, which was read and changed, the newest superblock; writes the older copy first. */
static inline void supers_update(const struct super_kind *kind, void *base, void *super)
{
	u32 older = super_seq(kind, base, 1) < super_seq(kind, base, 0);
	struct super_head_onmedia *head = super;

	head->seq = cpu_to_le64(le64_to_cpu(head->seq) + 1);
	head->crc = cpu_to_le32(super_crc(kind, super));
	super_write(kind, base, older, super);
	pm_fence();
	super_write(kind, base, !older, super);
	pm_fence();
}

/* Rewrites the copies that aren't valid. Returns them as bits. */
static inline u32 supers_repair(const struct super_kind *kind, void *base,
				const enum copy_state *state, const void *super)
{
	u32 copy, repaired = 0;

	for (copy = 0; copy < NR_SUPERS; copy++) {
		if (state[copy] == COPY_VALID)
			continue;
		super_write(kind, base, copy, super);
		repaired |= 1u << copy;
	}
	if (repaired)
		pm_fence();
	return repaired;
}

#endif

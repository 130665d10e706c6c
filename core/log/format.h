/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every byte that the write log keeps in persistent memory.
 *
 * This header is the specification; docs/writelog-format.md argues why each
 * crash state recovers. Layout of a log device, offsets from its start:
 *
 *   0          superblock, copy A            (one page)
 *   4096       superblock, copy B            (one page)
 *   table      nr_generations * 64 bytes     (starts on a page)
 *   data       nr_generations * nr_chunks * chunk_size bytes
 *                                            (starts on 2 MiB where the device allows)
 *
 * Chunk c of generation g is number g * nr_chunks + c from the start of the
 * data. Inside a chunk, data grow up from its start, and headers grow down from
 * its end, each in a cache line of its own:
 *
 *   0                      data of the entries, in order of their indexes
 *   ...
 *   end - 64 * (i + 2)     header of entry i
 *   end - 64               the chunk's own header
 *
 * Rules that everything keeps:
 *   - fields are little-endian; persistent structs end in _onmedia;
 *   - bits 28-63 of a generation's word, of a chunk's word and of an entry's
 *     order are the generation's identifier: it is never given twice, so what
 *     an earlier use of the same space left behind never counts;
 *   - a chunk's entries come to life by ONE aligned 8-byte store of the chunk's
 *     word, made after their headers and data are durable;
 *   - a generation changes its state by ONE aligned 8-byte store of its word.
 */
#ifndef FOREBAY_CORE_LOG_FORMAT_H
#define FOREBAY_CORE_LOG_FORMAT_H

#include "../pm/env.h"

#define WL_VERSION		1
#define WL_PAGE_SIZE		4096u
#define WL_UUID_SIZE		16
#define WL_ORIGIN_ID_SIZE	64
#define WL_NR_SUPERS		2

/*
 * One superblock copy. Both copies lie at the start of a page whose other bytes are zero. The valid
 * copy with the higher @seq counts. An update writes the older copy and fences before it changes the
 * newer one.
 */
struct wl_super_onmedia {
	__le64	magic;			/* WL_MAGIC: pm/supers.h */
	__le32	version;
	__le32	crc;			/* crc32c of the struct with crc == 0 */
	__le64	seq;
	__u8	uuid[WL_UUID_SIZE];
	__le64	device_size;		/* bytes that the layout covers */
	__le64	table;			/* byte offsets */
	__le64	data;
	__le32	nr_generations;
	__le32	nr_chunks;		/* of each generation */
	__le32	chunk_size;		/* bytes, a multiple of WL_PAGE_SIZE */
	__le32	align;			/* alignment of data whose length is a multiple of it */
	__le32	flags;			/* WL_SUPER_* */
	__le32	fingerprint;		/* of the origin, see wl_fingerprint(); WL_SUPER_FINGERPRINT */
	/* The origin that the entries belong to; both all zero: not bound. */
	__le64	origin_sectors;
	__u8	origin_id[WL_ORIGIN_ID_SIZE];	/* see wl_bind() */
};

#define WL_SUPER_DATA_CRC	1u	/* entry headers hold a checksum of the data */
/*
 * @fingerprint is not 0. An older Forebay would change the origin without the fingerprint, so it must
 * refuse such a log. The flag is set only while the log is in use or holds entries.
 */
#define WL_SUPER_FINGERPRINT	2u
#define WL_SUPER_FLAGS		(WL_SUPER_DATA_CRC | WL_SUPER_FINGERPRINT)	/* all known flags */

/*
 * One generation of the table.
 *
 * word: bits 0-1   state: 0 free, 1 open, 2 sealed
 *       bits 2-27  check: crc32c of everything else here and the generation's
 *                  number, upper 26 bits; a word of 0 is whole: never used
 *       bits 28-63 identifier; a free generation keeps its last one
 *
 * @entries is valid only in a sealed generation: the sum over its chunks. So a chunk's word that the
 * medium has lost is noticed.
 */
struct wl_gen_onmedia {
	__le64	word;
	__le64	entries;
	__u8	reserved[48];
};

/*
 * The header of a chunk. It holds entries only while its identifier is that of its generation, and the
 * generation is not free.
 *
 * word: bits 0-15  number of entries
 *       bits 16-27 check: crc32c of the rest of the word and the chunk's
 *                  number, upper 12 bits; a word of 0 is whole: never used
 *       bits 28-63 identifier of the generation
 */
struct wl_chunk_onmedia {
	__le64	word;
	__u8	reserved[56];
};

/*
 * The header of an entry. @crc is seeded with the log's UUID, and computed with the number of the chunk
 * in place of @crc. So a header is valid only in its own chunk.
 *
 * order: bits 0-27  sequence number within the generation
 *        bits 28-63 identifier of the generation
 */
struct wl_entry_onmedia {
	__le64	order;
	__le64	sector;			/* of the origin, 512 bytes each */
	__le64	nr_sectors;
	__le32	op;			/* enum wl_op */
	__le32	data;			/* byte offset in the chunk; no data: 0 */
	__le32	data_crc;		/* crc32c of the data; 0 if the log keeps none */
	__le32	crc;			/* crc32c of the header; crc: the chunk's number */
	__le32	index;			/* of the entry in the chunk */
	__u8	reserved[20];
};

#define WL_LINE			64u	/* every header is one cache line */
#define WL_ID_SHIFT		28
#define WL_MAX_ID		((1ULL << 36) - 1)
#define WL_MAX_SEQ		((1u << WL_ID_SHIFT) - 1)
#define WL_STATE_MASK		3ULL
#define WL_GEN_CHECK_SHIFT	2
#define WL_GEN_CHECK_BITS	26
#define WL_FILL_MASK		0xffffULL
#define WL_CHUNK_CHECK_SHIFT	16
#define WL_CHUNK_CHECK_BITS	12

#define WL_SECTOR_SHIFT		9
#define WL_DATA_ALIGN		256u	/* of all data: the block of the medium */
#define WL_MAX_SECTOR		(1ULL << 54)	/* no entry reaches beyond */
#define WL_MAX_FILL		0xffffu	/* entries of a chunk */
#define WL_MAX_GENERATIONS	4096u
#define WL_MAX_CHUNKS		16384u	/* of a generation */
#define WL_MIN_CHUNK_SIZE	4096u
#define WL_MAX_CHUNK_SIZE	(16u << 20)
#define WL_MAX_GEN_SIZE		(16ULL << 30)	/* so that sequence numbers suffice */

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every byte that the page store keeps in persistent memory.
 *
 * This header is the specification; docs/formats.md argues why each crash
 * state recovers. Layout of a cache device, offsets from its start:
 *
 *   0                  superblock, copy A          (one page)
 *   4096               superblock, copy B          (one page)
 *   file_table         nr_files * 64 bytes         (starts on a page)
 *   page_table         nr_pages * 16 bytes         (starts on a page)
 *   names              names_size bytes            (version 2: the region of the name log, which
 *                                                  ../names/format.h specifies; starts on a page)
 *   data               nr_pages * 4096 bytes       (starts on 2 MiB where the device allows)
 *
 * Rules that every record keeps:
 *   - fields are little-endian; persistent structs end in _onmedia;
 *   - a record comes to life, changes state and dies by ONE aligned 8-byte
 *     store of its "commit" word, made after all that it vouches for is
 *     durable; state 0 means "free", whatever the other bytes are;
 *   - a page record counts only while the file record it names is live and
 *     has the same generation: freeing a file record drops all its pages at
 *     once.
 */
#ifndef FOREBAY_CORE_STORE_FORMAT_H
#define FOREBAY_CORE_STORE_FORMAT_H

#include "../pm/env.h"

#define PS_VERSION		2	/* the newest */
#define PS_VERSION_PLAIN	1	/* without a name log; ps_format() makes it where that is enough */
#define PS_PAGE_SHIFT		12
#define PS_PAGE_SIZE		(1u << PS_PAGE_SHIFT)
#define PS_HANDLE_MAX		32
#define PS_UUID_SIZE		16
#define PS_NR_SUPERS		2

/*
 * One superblock copy. Both copies lie at the start of a page whose other bytes are zero. The valid
 * copy with the higher @seq counts. An update writes the older copy and fences before it changes the
 * newer one. All versions keep the fields of version 1 and the range of its crc; newer versions append
 * fields. So an older Forebay reads a newer version, and refuses it as that.
 */
struct ps_super_onmedia {
	__le64	magic;			/* PS_MAGIC: pm/supers.h */
	__le32	version;
	__le32	crc;			/* crc32c of the fields of version 1 with crc == 0 */
	__le64	seq;
	__u8	cache_uuid[PS_UUID_SIZE];
	__le64	device_size;		/* bytes that the layout covers */
	__le64	nr_files;
	__le64	nr_pages;
	__le64	file_table;		/* byte offsets */
	__le64	page_table;
	__le64	data;
	/* The lower directory that the pages belong to; all zero: not bound. */
	__u8	lower_uuid[PS_UUID_SIZE];	/* of the lower file system */
	__le32	root_type;			/* file handle of the directory */
	__le32	root_len;
	__u8	root_handle[PS_HANDLE_MAX];
	/* Version 2. Bytes of a page behind the fields of its version are zero, and don't count. */
	__le64	names;			/* byte offset of the name log's region */
	__le64	names_size;		/* its bytes: whole pages, at least one */
	__le32	names_crc;		/* crc32c: cache_uuid, names, names_size */
	__u8	reserved[4];
};

#define PS_SUPER_PLAIN_SIZE	offsetof(struct ps_super_onmedia, names)

/*
 * One file that has pages here. @size is a minimum: the file's size is the larger of @size and the
 * lower file's size, so 0 demands nothing. With PS_SIZE_EXACT the file was truncated to exactly this
 * size, and the truncation isn't known to be durable in the lower file. Recovery then truncates the
 * lower file again.
 *
 * @time is the time of the file's last change, for both mtime and ctime: nanoseconds since 1970,
 * signed, 0 for unknown. Recovery sets both times of the lower file if its ctime is older; a newer
 * ctime belongs to a later change. Versions of Forebay before @time wrote 0 there and never read it.
 *
 * commit: bits 0-1   state: 0 free, 1 live, 2 unlinked (last name removed
 *                    through Forebay, not yet known durable in the lower
 *                    file system)
 *         bits 2-31  zero
 *         bits 32-63 generation: one more at each new life, then never 0; a
 *                    free record keeps that of its last life
 */
struct ps_file_onmedia {
	__le64	commit;
	__le64	size;
	__le32	crc;			/* crc32c: generation, type, len, handle */
	__u8	type;			/* fid_type of exportfs */
	__u8	len;			/* bytes of handle */
	__u8	pad[2];
	__u8	handle[PS_HANDLE_MAX];
	__le64	time;
};

/*
 * One page of data; record i belongs to data page i.
 *
 * commit: bits 0-1   state: 0 free (then the whole word is 0), 1 out-of-sync,
 *                    2 clean
 *         bits 2-23  file record
 *         bits 24-63 page index in the file
 * check:  bits 0-31  generation of the file record
 *         bits 32-63 crc32c: commit without state, generation, page number
 */
struct ps_page_onmedia {
	__le64	commit;
	__le64	check;
};

#define PS_SIZE_EXACT		(1ULL << 63)
#define PS_FILE_STATE_MASK	3ULL
#define PS_FILE_GEN_SHIFT	32
#define PS_PAGE_STATE_MASK	3ULL
#define PS_PAGE_FILE_SHIFT	2
#define PS_PAGE_FILE_BITS	22
#define PS_PAGE_INDEX_SHIFT	24
#define PS_MAX_FILES		(1u << PS_PAGE_FILE_BITS)
#define PS_MAX_PAGES		(1u << 31)	/* of a device: 8 TiB */
#define PS_MAX_INDEX		(1ULL << 40)	/* file pages: 4 PiB */

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every byte that the name log keeps in persistent memory.
 *
 * This header is the specification; docs/names-format.md argues why each crash state recovers. The log lies
 * in a region of its own. Layout of the region, offsets from its start:
 *
 *   0            header, copy A          (one page)
 *   4096         header, copy B          (one page)
 *   8192         words                   (one page: struct nl_words_onmedia)
 *   decisions    one line, then a bit for each line of the ring; rounded up to a page
 *   ring         nr_lines * 64 bytes     (starts on a page)
 *
 * PLACES. A place is the number of a line of 64 bytes, counted from the first line ever used. It grows
 * for ever, and no place is given twice: also not after a crash, and not after the log was emptied.
 * Place p lies at line p modulo nr_lines of the ring. A record begins at a place and takes whole lines.
 * It may go round the end of the ring. The place of a record that creates an object is the object's
 * BIRTH.
 *
 * The committed records are those from the trim word to the commit word, without a gap. If the trim
 * word is not smaller than the commit word, there are none. Behind the larger of the two words there
 * may be records that no commit has reached: the TAIL. It ends at the first line that holds no record
 * of that place.
 *
 * Rules that everything keeps:
 *   - fields are little-endian; persistent structs end in _onmedia;
 *   - a record is part of the log by ONE aligned 8-byte store of the commit word, made after all lines
 *     before that place are durable;
 *   - records leave the log by ONE aligned 8-byte store of the trim word; their lines are used again
 *     after that store is durable;
 *   - decisions are written once, and count by ONE aligned 8-byte store of the decided word, made after
 *     they are durable;
 *   - a record names its own place and is covered by a checksum that is seeded with the log's UUID. So
 *     lines of earlier laps never count.
 */
#ifndef FOREBAY_CORE_NAMES_FORMAT_H
#define FOREBAY_CORE_NAMES_FORMAT_H

#include "../pm/env.h"

#define NL_MAGIC		0x454d414e42524f46ULL	/* "FORBNAME" */
#define NL_VERSION		1
#define NL_PAGE_SIZE		4096u
#define NL_LINE			64u
#define NL_UUID_SIZE		16
#define NL_HANDLE_MAX		32
#define NL_NR_HEADERS		2
#define NL_NR_BEATS		2

/* One header copy; the rules are those of ../pm/supers.h. It does not change between two formats. */
struct nl_header_onmedia {
	__le64	magic;
	__le32	version;
	__le32	crc;			/* crc32c of the struct with crc == 0 */
	__le64	seq;
	__u8	uuid[NL_UUID_SIZE];	/* new at each format: it seeds all checksums behind the header */
	__le64	size;			/* bytes of the region */
	__le64	decisions;		/* byte offsets */
	__le64	ring;
	__le64	nr_lines;		/* of the ring */
	__le64	first;			/* the first place of this log, at least 1 */
};

/*
 * A word. A word of 0 stands for no place; only the decided word may be 0.
 *
 * bits 0-51   a place
 * bits 52-63  check: crc32c of the place and of which word it is, upper 12 bits
 */
struct nl_word_onmedia {
	__le64	word;
	__u8	reserved[56];
};

/*
 * A heartbeat. The valid one with the higher @seq counts. @until is stored before any change is made
 * whose ctime may be later than the previous @until, and @back before any change whose ctime may be earlier
 * than that of a record in the log. Times are nanoseconds since 1970, of the clock that the lower file system
 * takes ctime from.
 */
struct nl_beat_onmedia {
	__le64	seq;			/* 0: none */
	__le64	time;			/* when it was made */
	__le64	until;			/* no change before the next heartbeat has a later ctime */
	__le64	durable;		/* a place: all records before it were durable */
	__le64	commit;			/* a place: the commit word was at least this */
	__le32	crc;			/* crc32c of the struct with crc == its number, 0 or 1 */
	__u8	reserved[4];
	__le64	back;			/* the clock was set back: no change since is earlier; 0: it wasn't */
	__u8	reserved2[8];
};

/* The page of words: each in a line of its own. The rest of the page is zero. */
struct nl_words_onmedia {
	struct nl_word_onmedia trim;	/* the log begins here */
	struct nl_word_onmedia commit;	/* records before it are committed */
	struct nl_word_onmedia decided;	/* decisions hold for records before it; not above trim: none */
	struct nl_beat_onmedia beat[NL_NR_BEATS];
};

/*
 * The line before the bits of the decisions. Bit n modulo nr_lines belongs to the record at place n. It
 * is 1 if storage has the record's change. Bits of other lines are 0.
 */
struct nl_decisions_onmedia {
	__le64	from;			/* the places that the decisions cover */
	__le64	to;
	__le32	bits_crc;		/* crc32c of all bits */
	__le32	crc;			/* crc32c of the struct with crc == 0 */
	__u8	reserved[40];
};

/*
 * The head of a record. Fields follow up to @length; then zeros up to the end of the last line. @crc is
 * computed over the lines in the order 1, 2, ..., 0, with crc == 0. So a writer needs no buffer for more
 * than two lines.
 */
struct nl_record_onmedia {
	__le64	place;
	__le64	began;			/* the next place of the log, before the change was made below */
	__le32	crc;
	__le16	lines;			/* 1 to NL_MAX_LINES */
	__le16	length;			/* bytes, head included */
	__u8	kind;			/* enum nl_kind */
	__u8	flags;			/* NL_NOREPLACE, NL_EXCHANGE, NL_SAME_CTIME(), NL_STEPPED */
	__u8	reserved[6];
};

enum nl_kind {
	NL_CREATE = 1,		/* a file, directory, symbolic link or special file, by its mode */
	NL_TMPFILE = 2,		/* a file without a name */
	NL_LINK = 3,
	NL_UNLINK = 4,
	NL_RMDIR = 5,
	NL_RENAME = 6,		/* object2, without NL_EXCHANGE: what the new name had before */
	NL_SETATTR = 7,		/* the attributes that the mask names */
	NL_XATTR_SET = 8,	/* and the attributes after it: an ACL changes the mode */
	NL_XATTR_REMOVE = 9,	/* likewise */
	NL_IFLAGS = 10,		/* inode flags, as FS_IOC_SETFLAGS has them, and the attributes */
	NL_OPAQUE = 11,		/* a change that the log can't express */
};

#define NL_NOREPLACE		1u	/* of a rename, as in renameat2() */
#define NL_EXCHANGE		2u
/*
 * For each of the fields DIR, DIR2, SELF and SELF2, given as the bit of nl_change.has: the directory had the
 * ctime that it has after the change before the change, too.
 */
#define NL_SAME_CTIME(field)	((field) << 1)
/*
 * The counters of the record's directories were raised by NL_STEP right before the change, in memory only,
 * and those in the record are from behind that. Storage has greater ones with the change. Without it, they
 * are lower by NL_STEP than those in the record, or by less, for reads since may have raised them.
 */
#define NL_STEPPED		16u
#define NL_STEP			1024u

/*
 * A field: this head, @length bytes, and zeros up to a multiple of 4. Fields stand in the order of their
 * types, each at most once; nl_kinds (layout.h) says which ones a kind has.
 */
struct nl_field_onmedia {
	__u8	type;			/* enum nl_field */
	__u8	reserved;
	__le16	length;
};

enum nl_field {
	NL_F_DIR = 1,		/* struct nl_dir_onmedia: the directory of the (old) name */
	NL_F_DIR2 = 2,		/* the same, of the new name, if it is another directory */
	NL_F_OBJECT = 3,	/* struct nl_identity_onmedia: what the name stands for, or what changed */
	NL_F_OBJECT2 = 4,	/* the same, of the object that a rename replaces or exchanges */
	NL_F_SELF = 5,		/* struct nl_count_onmedia: the object changed; a directory, or SETATTR */
	NL_F_SELF2 = 6,		/* the same for object2 */
	NL_F_NEEDS = 7,		/* struct nl_identity_onmedia: the file whose data a commit needs (N2) */
	NL_F_ATTR = 8,		/* struct nl_attr_onmedia */
	NL_F_NAME = 9,		/* bytes without the final 0: the (old) name */
	NL_F_NAME2 = 10,	/* the new name */
	NL_F_TARGET = 11,	/* of a symbolic link */
	NL_F_XATTR = 12,	/* the name of an extended attribute, with its prefix; ACLs are such */
	NL_F_VALUE = 13,	/* and its value */
};

#define NL_NR_FIELDS		14

/*
 * An object: birth, or handle and time of birth. The handle is not empty. A handle that belongs to a
 * creation that storage does not have is never decoded.
 */
struct nl_identity_onmedia {
	__le64	birth;			/* 0: created before the log's first record, or not known */
	__le64	btime;			/* nanoseconds since 1970, signed; 0: not known */
	__u8	type;			/* fid_type of exportfs */
	__u8	handle[];		/* the rest of the field, NL_HANDLE_MAX at most */
};

/*
 * A directory's change counter from before the change, with NL_STEPPED from behind the step; and its ctime
 * after the change. 0: the counter says nothing, because it didn't rise; DIR and DIR2 have none of 0. In SELF
 * of a change of attributes (NL_SETATTR, NL_XATTR_SET, NL_XATTR_REMOVE, NL_IFLAGS), if the mode is not that
 * of a directory: the inode's counter after the change.
 */
struct nl_count_onmedia {
	__le64	before;
	__le64	ctime;
};

struct nl_dir_onmedia {
	struct nl_count_onmedia count;
	struct nl_identity_onmedia id;
};

struct nl_attr_onmedia {
	__le32	mask;			/* NL_ATTR_*: the fields that are valid; the others are 0 */
	__le32	mode;
	__le32	uid;
	__le32	gid;
	__le32	rdev;
	__le32	iflags;
	__le64	atime;
	__le64	mtime;
};

#define NL_ATTR_MODE		1u	/* type and permissions, as stat() has them */
#define NL_ATTR_UID		2u
#define NL_ATTR_GID		4u
#define NL_ATTR_RDEV		8u
#define NL_ATTR_IFLAGS		16u
#define NL_ATTR_ATIME		32u
#define NL_ATTR_MTIME		64u
#define NL_ATTR_ALL		127u

#define NL_MODE_TYPE		0170000u
#define NL_MODE_DIR		0040000u

#define NL_PLACE_BITS		52
#define NL_MAX_PLACE		((1ULL << NL_PLACE_BITS) - 1)
#define NL_MAX_LINES		128u	/* of a record */
#define NL_MAX_RECORD		(NL_MAX_LINES * NL_LINE)
#define NL_NAME_MAX		255u
#define NL_TARGET_MAX		4095u
#define NL_VALUE_MAX		4096u	/* longer values can't be logged */
#define NL_MIN_LINES		(4 * NL_MAX_LINES)	/* of a ring */
#define NL_MAX_RING_LINES	(1ULL << 26)	/* 4 GiB */

#endif

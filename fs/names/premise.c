// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which file systems below can have a name log.
 *
 * Recovery takes two things for granted: storage has a prefix of the lower journal's transactions, and a
 * directory's change counter is in the same transaction as the change. Both hold for ext4 with its journal
 * and for xfs of version 5. What a file system is made of is read from its superblock on storage, not
 * probed; how it is mounted, from the options that it shows.
 */
#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/magic.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "premise.h"

/* ext4's superblock lies 1024 bytes from the start. Offsets of its fields, all little-endian. */
#define EXT4_AT			1024
#define EXT4_AT_MAGIC		0x38
#define EXT4_AT_CREATOR		0x48
#define EXT4_AT_INODE_SIZE	0x58
#define EXT4_AT_COMPAT		0x5c
#define EXT4_HAS_JOURNAL	0x4
#define EXT4_FAST_COMMIT	0x400
#define EXT4_HURD		1

/* xfs's superblock is the first sector, big-endian. */
#define XFS_AT_VERSION		100
#define XFS_VERSION_MASK	0xf

/* Both are in the first two of these blocks. */
#define PREMISE_BLOCK		1024

static u32 le32_at(const char *bytes, u32 at)
{
	return get_unaligned_le32(bytes + at);
}

static const char *ext4_unfit(const char *super)
{
	if (get_unaligned_le16(super + EXT4_AT_MAGIC) != EXT4_SUPER_MAGIC)
		return "its superblock can't be read";
	if (!(le32_at(super, EXT4_AT_COMPAT) & EXT4_HAS_JOURNAL))
		return "ext4 has no journal";
	if (le32_at(super, EXT4_AT_COMPAT) & EXT4_FAST_COMMIT)
		return "ext4 has fast commits, which leave change counters out";
	if (le32_at(super, EXT4_AT_CREATOR) == EXT4_HURD)
		return "its inodes are the Hurd's, without change counters";
	if (get_unaligned_le16(super + EXT4_AT_INODE_SIZE) < 256)
		return "ext4 has inodes of 128 bytes, with half a change counter";
	return NULL;
}

static const char *xfs_unfit(const char *super)
{
	if ((get_unaligned_be16(super + XFS_AT_VERSION) & XFS_VERSION_MASK) < 5)
		return "xfs of version 4 has no change counters";
	return NULL;
}

/* A whole word among the mount options, which a comma precedes. */
static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);
	const char *at = options;

	while ((at = strstr(at, name))) {
		if (at > options && at[-1] == ',' && (!at[len] || at[len] == ',' || at[len] == '='))
			return true;
		at += len;
	}
	return false;
}

static const char *options_unfit(const char *options)
{
	if (has_option(options, "nobarrier") || has_option(options, "barrier=0"))
		return "it is mounted with nobarrier";
	if (has_option(options, "norecovery"))
		return "it is mounted with norecovery";
	return NULL;
}

/* As /proc/mounts shows them. */
static const char *mount_unfit(struct super_block *sb)
{
	struct seq_file m = { .size = PAGE_SIZE };
	const char *why = "its mount options can't be read";

	if (!sb->s_op->show_options)
		return NULL;
	m.buf = kzalloc(m.size, GFP_KERNEL);
	if (m.buf && !sb->s_op->show_options(&m, sb->s_root) && !seq_has_overflowed(&m)) {
		m.buf[m.count] = 0;
		why = options_unfit(m.buf);
	}
	kfree(m.buf);
	return why;
}

/**
 * fb_names_unfit() - why the lower file system can't have a name log
 * @fsb: the mount
 *
 * Context: process. Reads the lower file system's superblock. Sleeps.
 * Return: NULL if it can, or the rest of a sentence.
 */
const char *fb_names_unfit(struct fb_sb *fsb)
{
	struct super_block *sb = fsb->lower.mnt->mnt_sb;
	bool ext4 = !strcmp(sb->s_type->name, "ext4"), xfs = !strcmp(sb->s_type->name, "xfs");
	const char *why = "is neither ext4 nor xfs";
	struct buffer_head *bh;

	if ((!ext4 && !xfs) || !sb->s_bdev)
		return why;
	bh = __bread(sb->s_bdev, (ext4 ? EXT4_AT : 0) / sb->s_blocksize, sb->s_blocksize);
	if (!bh)
		return "its superblock can't be read";
	why = ext4 ? ext4_unfit(bh->b_data + EXT4_AT % sb->s_blocksize) : xfs_unfit(bh->b_data);
	brelse(bh);
	return why ?: mount_unfit(sb);
}

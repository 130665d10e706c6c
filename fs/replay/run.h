/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One replay of a name log.
 *
 * Floor 7, replay: what mount does with a name log that a crash left. It looks at the lower file system,
 * makes the decisions of core/names durable, does again what storage lacks, and empties the log. Nothing
 * of it runs once the root inode exists. May use: writeback and what is below. Used by: vfs.
 */
#ifndef FOREBAY_REPLAY_RUN_H
#define FOREBAY_REPLAY_RUN_H

#include <linux/fs_context.h>

#include "../../core/names/replay.h"
#include "../forebay.h"

/* A directory that was found; make.c. */
struct fb_found_dir {
	const struct nl_node *node;
	struct dentry *dentry;
};

struct fb_final;

struct fb_replay {
	struct fb_sb *fsb;
	struct fs_context *fc;		/* for messages */
	struct nl *nl;
	u64 life;			/* the trim word of the log that staging is for */
	struct dentry *staging;		/* NULL: not open yet */
	bool new_staging;		/* this mount has made it */
	errseq_t write_errors;		/* of the lower file system, when replay began */
	struct nl_replay_sizes sizes;
	struct nl_bind bind;
	u64 changes;			/* committed, and storage lacked them */
	u64 made, moved, added, removed, attrs;	/* done so far */
	unsigned long pages, lost_pages;	/* of made files; the device can't read the latter */
	unsigned long told;		/* the last line of progress, in jiffies */
	struct nl_record record, other;	/* of @bind */
	struct nl_record scratch;
	struct fb_final *finals;	/* attr.c: of each node */
	struct fb_found_dir dirs[256];
};

/*
 * A file that gets one name, in a directory that is made before it: it is made in that directory. It is whole
 * before the directory leaves staging, and nothing is done to it later. ("File" is anything but a directory.)
 */
static inline bool fb_is_at_home(const struct fb_replay *run, const struct nl_node *node)
{
	const struct nl_node *dir;

	if (node->is_dir || node->names != 1 || !nl_node_made(&run->bind, node))
		return false;
	dir = &run->bind.nodes.nodes[run->bind.names[node->name].dir - 1];
	return dir->is_dir && dir->born < node->born && nl_node_made(&run->bind, dir);
}

#endif

// SPDX-License-Identifier: GPL-2.0-only
/* What an administrator is told of a replay: its progress, and why it ends with an error. */
#include "../fail.h"
#include "tell.h"

#define FB_TELL_AFTER	(5 * HZ)

static const char *fb_advice(int err)
{
	switch (err) {
	case -ENOSPC:
		return "no space or no inode is left there: truncate or delete files that were not changed "
		       "shortly before the crash, then mount again; nothing is lost";
	case -EDQUOT:
		return "a quota there is used up, the mounter's or the owner's: raise it, or mount with "
		       "CAP_SYS_RESOURCE, then mount again; nothing is lost";
	case -EPERM:
		return "a file or folder there must not be changed: look for it with lsattr -R, take its flag i "
		       "or a away with chattr, then mount again; nothing is lost";
	case -EINTR:
		return "mount was interrupted: mount again, and replay goes on";
	case -ENOMEM:
		return "mount again when memory is free; nothing is lost";
	default:
		return "nothing is lost: mount again when the cause is gone, or with -o names=discard";
	}
}

/**
 * fb_replay_failed() - say that a step has failed, and what to do
 * @run: the replay; log and file records stay
 * @what: was to be done
 * @name: of the file that it was to be done to; or NULL
 * @err: the error
 *
 * Return: @err.
 */
int fb_replay_failed(struct fb_replay *run, const char *what, const struct nl_text *name, int err)
{
	const char *cache = run->fsb->cache_name, *below = run->fc->source;

	if (name)
		fb_error(run->fc, "%s: replaying the name log: can't %s '%*pE' in %s (error %d); %s",
			 cache, what, (int)name->len, name->bytes, below, err, fb_advice(err));
	else
		fb_error(run->fc, "%s: replaying the name log: can't %s in %s (error %d); %s",
			 cache, what, below, err, fb_advice(err));
	return err;
}

/* The last component of a name that an object gets. The text is in @run->scratch. */
static const struct nl_text *fb_name_of_node(struct fb_replay *run, const struct nl_node *node)
{
	const struct nl_bind *bind = &run->bind;
	const struct nl_name *entry;
	u32 i;

	for (i = 0; i < bind->nr_names; i++) {
		entry = &bind->names[i];
		if (entry->op == NL_BIND_ADD && &bind->nodes.nodes[entry->object - 1] == node &&
		    !nl_read(run->nl, entry->place, &run->scratch))
			return entry->second ? &run->scratch.change.name2 : &run->scratch.change.name;
	}
	return NULL;
}

/**
 * fb_replay_failed_attr() - say that an object's attributes can't be set
 * @run: the replay; its @scratch is overwritten
 * @node: the object
 * @uid: the owner that it has to have
 * @err: the error
 *
 * Return: @err.
 */
int fb_replay_failed_attr(struct fb_replay *run, const struct nl_node *node, u32 uid, int err)
{
	const struct nl_text *name = fb_name_of_node(run, node);
	char what[64];

	if (err == -EDQUOT)
		scnprintf(what, sizeof(what), "give user %u the file", uid);
	else
		scnprintf(what, sizeof(what), "set attributes%s", name ? " of" : "");
	return fb_replay_failed(run, what, name, err);
}

/**
 * fb_tell_progress() - say how far a long replay is
 * @run: the replay
 */
void fb_tell_progress(struct fb_replay *run)
{
	if (time_before(jiffies, run->told + FB_TELL_AFTER))
		return;
	run->told = jiffies;
	pr_info("%s: replaying the name log: %llu objects made, %llu directories moved, %llu names bound, %llu removed\n",
		run->fsb->cache_name, run->made, run->moved, run->added, run->removed);
}

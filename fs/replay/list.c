// SPDX-License-Identifier: GPL-2.0-only
/* The names of a lower directory, some at a time: while a directory is read, it can't be changed. */
#include <linux/file.h>

#include "list.h"

#define FB_LIST_SIZE	SZ_64K

struct fb_names_list {
	struct dir_context ctx;
	bool (*wanted)(const char *name, unsigned int len);
	u32 used, read;
	u8 names[FB_LIST_SIZE];		/* each behind its length */
};

static bool fb_list_entry(struct dir_context *ctx, const char *name, int len, loff_t offset, u64 ino,
			  unsigned int type)
{
	struct fb_names_list *list = container_of(ctx, struct fb_names_list, ctx);

	if (len <= 0 || len > NAME_MAX || !list->wanted(name, len))
		return true;
	if (list->used + 1 + len > FB_LIST_SIZE)
		return false;
	list->names[list->used++] = len;
	memcpy(list->names + list->used, name, len);
	list->used += len;
	return true;
}

/**
 * fb_list_names() - the first names of a directory that are wanted
 * @fsb: the mount
 * @dir: lower directory, not locked
 * @wanted: says which ones
 *
 * Return: a list for fb_list_free(); or an ERR_PTR.
 */
struct fb_names_list *fb_list_names(struct fb_sb *fsb, struct dentry *dir,
				    bool (*wanted)(const char *name, unsigned int len))
{
	struct path path = { .mnt = fsb->lower.mnt, .dentry = dir };
	struct fb_names_list *list = kvzalloc(sizeof(*list), GFP_KERNEL);
	struct file *file;
	int err;

	if (!list)
		return ERR_PTR(-ENOMEM);
	list->ctx.actor = fb_list_entry;
	list->wanted = wanted;
	file = dentry_open(&path, O_RDONLY | O_DIRECTORY | O_NOATIME, fsb->cred);
	err = PTR_ERR_OR_ZERO(file);
	if (!err) {
		err = iterate_dir(file, &list->ctx);
		__fput_sync(file);
	}
	if (!err)
		return list;
	kvfree(list);
	return ERR_PTR(err);
}

/**
 * fb_list_next() - the next name of a list
 * @list: from fb_list_names()
 * @name: set; valid until fb_list_free()
 *
 * Return: whether there is one.
 */
bool fb_list_next(struct fb_names_list *list, struct qstr *name)
{
	u8 len;

	if (list->read == list->used)
		return false;
	len = list->names[list->read++];
	*name = (struct qstr)QSTR_INIT(list->names + list->read, len);
	list->read += len;
	return true;
}

/**
 * fb_list_free() - free a list
 * @list: from fb_list_names()
 */
void fb_list_free(struct fb_names_list *list)
{
	kvfree(list);
}

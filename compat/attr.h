/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes and state of inodes. */
#ifndef FOREBAY_COMPAT_ATTR_H
#define FOREBAY_COMPAT_ATTR_H

#include <linux/fs.h>
#include <linux/fileattr.h>

#include "compat.h"

/* Linux 6.17 gives struct fileattr another name. */
#ifndef COMPAT_HAS_FILE_KATTR
#define file_kattr	fileattr
#endif

/* Linux 6.19 hides inode->i_state. */
#ifndef COMPAT_HAS_INODE_STATE
#define inode_state_read_once(inode)	READ_ONCE((inode)->i_state)
#endif

/*
 * Moves mtime and ctime of a file that is open for writing, also if the file's own writes leave them alone
 * (FMODE_NOCMTIME). Newer kernels' file_update_time() heeds that flag, too.
 */
static inline int compat_update_time(struct file *file)
{
#ifdef COMPAT_HAS_UPDATE_TIME_TYPE
	struct inode *inode = file_inode(file);

	if (IS_NOCMTIME(inode))
		return 0;
	if (inode->i_op->update_time)
		return inode->i_op->update_time(inode, FS_UPD_CMTIME, 0);
	return generic_update_time(inode, FS_UPD_CMTIME, 0);
#else
	return file_update_time(file);
#endif
}

/*
 * Before a lower inode's ->setattr() is called to set both times as the caller has them in struct iattr;
 * returns what ia_valid needs for that. @inode is locked.
 *
 * An inode with multigrain time stamps (Linux 6.13) gets the time of the call otherwise, and even with
 * ATTR_CTIME_SET its ctime never goes back. So both times are set in the inode first, and ->setattr() stores
 * what it finds. It doesn't change mtime without ATTR_MTIME, nor a ctime that is the same already.
 */
static inline unsigned int compat_prepare_times(struct inode *inode, struct timespec64 mtime,
						struct timespec64 ctime)
{
	lockdep_assert_held_write(&inode->i_rwsem);
#ifdef COMPAT_HAS_CTIME_SET
	inode_set_mtime_to_ts(inode, mtime);
	inode_set_ctime_to_ts(inode, ctime);
	return ATTR_CTIME | ATTR_CTIME_SET;
#else
	return ATTR_MTIME | ATTR_CTIME;
#endif
}

/*
 * A write takes set-ID bits away. Linux 7 exports only the function that sets the time as well;
 * S_NOCMTIME, which our inodes have, makes an end to that part.
 */
static inline int compat_remove_privs(struct kiocb *iocb)
{
#ifdef COMPAT_HAS_REMOVE_PRIVS_FLAGS
	return file_remove_privs_flags(iocb->ki_filp, iocb->ki_flags);
#else
	return kiocb_modified(iocb);
#endif
}

#endif

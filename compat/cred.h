/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Credentials in force for a while. Since Linux 6.14, override_creds() and revert_creds() leave all
 * references to the caller; before, they took and dropped one. Credentials that outlive the override need
 * neither.
 */
#ifndef FOREBAY_COMPAT_CRED_H
#define FOREBAY_COMPAT_CRED_H

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>

#include "compat.h"

/*
 * Puts @new in force, with the caller's reference, in place of credentials that override_creds() has put
 * in force. compat_revert_creds_put() ends both.
 */
static inline void compat_replace_creds(struct cred *new)
{
#ifdef COMPAT_HAS_PLAIN_CREDS
	override_creds(new);
#else
	put_cred(override_creds(new));	/* the reference of the first override */
	put_cred(new);
#endif
}

/* The credentials @old again; the reference of those in force is dropped. */
static inline void compat_revert_creds_put(const struct cred *old)
{
#ifdef COMPAT_HAS_PLAIN_CREDS
	put_cred(revert_creds(old));
#else
	revert_creds(old);
#endif
}

/*
 * True if the task itself has a capability, whatever credentials are in force for a while. Linux 7.3
 * doesn't export has_capability_noaudit(). There the credentials in force must have the capability, too:
 * they are asked in the task's place whether a security module allows it.
 */
static inline bool compat_task_is_capable(int cap)
{
#ifdef COMPAT_HAS_CAPABLE_NOAUDIT
	const struct cred *own = current_real_cred();

	return own->user_ns == &init_user_ns && cap_raised(own->cap_effective, cap) && capable_noaudit(cap);
#else
	return has_capability_noaudit(current, cap);
#endif
}

#endif

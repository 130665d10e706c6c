// SPDX-License-Identifier: GPL-2.0-only
/* Why a mount or a remount fails: for the caller, and for the kernel's log. */
#include <linux/fs_context.h>

#include "fail.h"

/**
 * fb_error() - say why a mount or a remount fails
 * @fc: its context
 * @fmt: a sentence, as for printk()
 *
 * The words go to the caller and to the kernel's log. errorf() alone writes to one of the two. The caller
 * reads them from the context's file if fsopen() or fspick() made the context.
 *
 * Only for what CAP_SYS_ADMIN was asked for: an option is parsed without.
 */
void fb_error(struct fs_context *fc, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	if (fc->log.log)
		pr_err("%pV\n", &vaf);
	errorf(fc, "forebay: %pV", &vaf);
	va_end(args);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* struct folio_batch, which Linux 7 has in another header. */
#ifndef FOREBAY_COMPAT_FOLIO_BATCH_H
#define FOREBAY_COMPAT_FOLIO_BATCH_H

#include "compat.h"

#ifdef COMPAT_HAS_FOLIO_BATCH
#include <linux/folio_batch.h>
#include <linux/pagemap.h>
#else
#include <linux/pagevec.h>
#endif

#endif

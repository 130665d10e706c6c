/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page frame number that a DAX device tells. Linux 6.17 has a plain number; older kernels have flags
 * with it, which say whether the pages are a device's own.
 */
#ifndef FOREBAY_COMPAT_PFN_H
#define FOREBAY_COMPAT_PFN_H

#include <linux/mm.h>

#include "compat.h"

#ifdef COMPAT_HAS_PFN_T
#include <linux/pfn_t.h>

typedef pfn_t compat_pfn_t;

static inline unsigned long compat_pfn_number(compat_pfn_t pfn)
{
	return pfn_t_to_pfn(pfn);
}

static inline bool compat_pfn_has_page(compat_pfn_t pfn)
{
	return pfn_t_valid(pfn);
}

static inline bool compat_pfn_is_device(compat_pfn_t pfn)
{
	return pfn_t_devmap(pfn);
}

/* For a page of ordinary memory. */
static inline compat_pfn_t compat_pfn_of_memory(unsigned long number)
{
	return pfn_to_pfn_t(number);
}
#else
typedef unsigned long compat_pfn_t;

static inline unsigned long compat_pfn_number(compat_pfn_t pfn)
{
	return pfn;
}

static inline bool compat_pfn_has_page(compat_pfn_t pfn)
{
	return pfn_valid(pfn);
}

static inline bool compat_pfn_is_device(compat_pfn_t pfn)
{
	return pfn_valid(pfn) && is_zone_device_page(pfn_to_page(pfn));
}

static inline compat_pfn_t compat_pfn_of_memory(unsigned long number)
{
	return number;
}
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Interval trees whose functions have external linkage: newer kernels define one function more. */
#ifndef FOREBAY_COMPAT_INTERVAL_TREE_H
#define FOREBAY_COMPAT_INTERVAL_TREE_H

#include <linux/interval_tree_generic.h>

#include "compat.h"

/* Stands before INTERVAL_TREE_DEFINE(). */
#ifdef COMPAT_HAS_GLOBAL_SUBTREE_SEARCH
#define COMPAT_INTERVAL_TREE(type, itype, prefix)				\
type * prefix ## _subtree_search(type * node, itype start, itype last);
#else
#define COMPAT_INTERVAL_TREE(type, itype, prefix)
#endif

#endif

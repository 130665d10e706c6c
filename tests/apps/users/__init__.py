# SPDX-License-Identifier: GPL-2.0-only
"""The applications: a module each, with run(place), which raises Failure."""

# In the order of running. The databases come last, so that unmount has much to write back: fio drains the cache.
NAMES = ("attributes", "tar", "git", "compile", "fio", "stress", "rocksdb", "redis", "sqlite", "postgresql")
# Those that sync files that are there already: so something is absorbed.
SYNCING = ("fio", "rocksdb", "redis", "sqlite", "postgresql")

# SPDX-License-Identifier: GPL-2.0-only
"""The applications: a module each, with run(place), which raises Failure."""

# In the order of running. fio drains the cache. The databases come last, so that unmount has much to write
# back.
NAMES = ("attributes", "tar", "git", "compile", "fio", "stress", "rocksdb", "redis", "sqlite", "postgresql")
# Those that sync files that are there already: so something is absorbed.
SYNCING = ("fio", "rocksdb", "redis", "sqlite", "postgresql")

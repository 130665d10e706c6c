# SPDX-License-Identifier: GPL-2.0-only
"""The applications: a module each, with run(place), which raises Failure."""

# In the order of running; the short ones first.
NAMES = ("attributes", "tar", "git", "compile", "sqlite", "redis", "rocksdb", "postgresql", "fio", "stress")

# SPDX-License-Identifier: GPL-2.0-only
"""Another user's file, whose DAX stores go through a small cache several times over beside what a test does to the worker."""

import os
import time

from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, fallocate
from stack import MOUNT, PAGE

CACHE_MIB = 8
SIZE = 4 * CACHE_MIB << 20


def other_file():
    """Makes the file, on storage; returns the open descriptor."""
    fd = os.open(MOUNT / "other", os.O_RDWR | os.O_CREAT)
    fallocate(fd, 0, 0, SIZE)
    os.pwrite(fd, b"o" * SIZE, 0)
    os.fsync(fd)
    return fd


def store_in_all(fd):
    """Stores in each page: SIGBUS if the worker makes no room. Returns the seconds that it took."""
    start = before = time.monotonic()
    longest = 0
    with Mapping(fd, SIZE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        for page in range(SIZE // PAGE):
            mapping.write(page * PAGE, b"%8d" % page)
            now = time.monotonic()
            longest, before = max(longest, now - before), now
    took = time.monotonic() - start
    print("%.1f s, the longest store %.1f s" % (took, longest))
    return took

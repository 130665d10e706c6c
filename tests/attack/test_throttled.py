# SPDX-License-Identifier: GPL-2.0-only
"""One user's call takes long in the lower file system: the worker, which serves all users, passes the file over."""

import os
import signal
import time
from pathlib import Path

import pytest
from conftest import clean_up
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, fallocate, pages
from stack import LOWER, MOUNT, PAGE, SSD, Stack, run, small_cache

CACHE_MIB = 8
COPY_MIB = 256
GROUP = Path("/sys/fs/cgroup/throttled")


@pytest.fixture(name="little")
def little_fixture():
    """A small cache."""
    clean_up()
    stack = Stack(cache=small_cache(CACHE_MIB), mib=768).make()
    yield stack
    os.chdir("/")
    stack.destroy()
    clean_up()


def limit_writes(rate):
    """The group's tasks write so many bytes/s to the SSD, or "max"."""
    number = os.stat(SSD).st_rdev
    (GROUP / "io.max").write_text(f"{os.major(number)}:{os.minor(number)} wbps={rate}", encoding="ascii")


@pytest.fixture(name="throttled")
def throttled_fixture():
    """A cgroup whose tasks write 1 MiB/s to the SSD, and have little memory for what is not written yet."""
    Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+io +memory", encoding="ascii")
    GROUP.mkdir()
    limit_writes(1 << 20)
    (GROUP / "memory.high").write_text(str(32 << 20), encoding="ascii")
    yield GROUP
    limit_writes("max")
    GROUP.rmdir()


def copy_in(group):
    """A process in the group copies into its own file, of which a page is in PMem; returns its number."""
    (MOUNT / "source").write_bytes(b"s" * (COPY_MIB << 20))
    os.sync()
    target = os.open(MOUNT / "target", os.O_RDWR | os.O_CREAT)
    for byte in (b"1", b"2"):
        os.pwrite(target, byte * PAGE, 0)
        os.fsync(target)
    assert pages(target) == 1
    pid = os.fork()
    if not pid:
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        source = os.open(MOUNT / "source", os.O_RDONLY)
        os.copy_file_range(source, target, COPY_MIB << 20, 0, 1 << 20)
        os._exit(0)
    os.close(target)
    return pid


def test_worker_passes_over_a_busy_file(little, throttled):
    """Beside a copy that takes minutes, another user's DAX stores go through the cache several times over."""
    fd = os.open(MOUNT / "other", os.O_RDWR | os.O_CREAT)
    size = 4 * CACHE_MIB << 20
    fallocate(fd, 0, 0, size)
    os.pwrite(fd, b"o" * size, 0)
    os.fsync(fd)
    child = copy_in(throttled)
    try:
        time.sleep(5)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the copy is over: nothing was throttled"
        with Mapping(fd, size, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
            for page in range(size // PAGE):
                mapping.write(page * PAGE, b"%8d" % page)       # SIGBUS if the worker makes no room
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the copy is over"
        assert little.value("pages_reclaimed") > 2 * little.value("pages_total")
    finally:
        os.kill(child, signal.SIGKILL)
        limit_writes("max")
        os.waitpid(child, 0)
        os.close(fd)
    run(f"forebay drain {MOUNT}")
    with open(LOWER / "other", "rb") as below:
        assert below.read(8) == b"%8d" % 0

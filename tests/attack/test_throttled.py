# SPDX-License-Identifier: GPL-2.0-only
"""One user's calls, or pages, take long in the lower file system: the worker, which serves all users, passes the file over."""

import os
import signal
import time
from pathlib import Path

import pytest
from beside import CACHE_MIB, other_file, store_in_all
from conftest import clean_up
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, aligned, asynchronous_read, pages
from stack import LOWER, MOUNT, PAGE, SSD, Stack, run, small_cache

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


def limit(what, rate):
    """The group's tasks read (rbps) or write (wbps) so many bytes/s of the SSD, or "max"."""
    number = os.stat(SSD).st_rdev
    (GROUP / "io.max").write_text(f"{os.major(number)}:{os.minor(number)} {what}={rate}", encoding="ascii")


@pytest.fixture(name="throttled")
def throttled_fixture():
    """A cgroup whose tasks write 1 MiB/s to the SSD, read 64 KiB/s, and have little memory for what is not written yet."""
    Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+io +memory", encoding="ascii")
    GROUP.mkdir()
    limit("wbps", 1 << 20)
    limit("rbps", 1 << 16)
    (GROUP / "memory.high").write_text(str(32 << 20), encoding="ascii")
    yield GROUP
    for what in ("rbps", "wbps"):
        limit(what, "max")
    GROUP.rmdir()


def enters(fd, size, at=0):
    """Syncs a part of the file until it is in PMem: to storage is the faster way at times, above all on a debug kernel."""
    for _ in range(10):
        for byte in (b"1", b"2"):
            os.pwrite(fd, byte * size, at)
            os.fsync(fd)
        if pages(fd, at, size) == size // PAGE:
            return True
    return False


def copy_in(group):
    """A process in the group copies into its own file, of which a page is in PMem; returns its number."""
    (MOUNT / "source").write_bytes(b"s" * (COPY_MIB << 20))
    os.sync()
    target = os.open(MOUNT / "target", os.O_RDWR | os.O_CREAT)
    assert enters(target, PAGE)
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
    fd = other_file()
    child = copy_in(throttled)
    try:
        time.sleep(5)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the copy is over: nothing was throttled"
        store_in_all(fd)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the copy is over"
        assert little.value("pages_reclaimed") > 2 * little.value("pages_total")
    finally:
        os.kill(child, signal.SIGKILL)
        limit("wbps", "max")
        os.waitpid(child, 0)
        os.close(fd)
    run(f"forebay drain {MOUNT}")
    with open(LOWER / "other", "rb") as below:
        assert below.read(8) == b"%8d" % 0


def slow_files(group, number, mib):
    """A user in the group syncs so many files; their pages are in PMem. Then the group writes 16 KiB/s."""
    limit("wbps", "max")
    pid = os.fork()
    if not pid:
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        size, wrong = int(mib * (1 << 20)), 0
        for name in range(number):
            slow = os.open(MOUNT / ("slow%d" % name), os.O_RDWR | os.O_CREAT)
            wrong += not enters(slow, size)
        os._exit(wrong != 0)
    assert os.waitpid(pid, 0)[1] == 0
    os.sync()
    limit("wbps", 1 << 14)


@pytest.mark.parametrize("number, mib, seconds", [(1, 1, 50), (32, 0.0625, 20)])
def test_worker_passes_over_slow_files(little, throttled, number, mib, seconds):
    """What a throttled user's syncs brought into PMem is written back at that user's rate. Other users don't wait for it."""
    fd = other_file()
    alone = store_in_all(fd)        # a busy host makes both slow
    slow_files(throttled, number, mib)
    before = little.value("pages_reclaimed")
    took = store_in_all(fd)
    limit("wbps", "max")
    assert little.value("pages_reclaimed") - before > 2 * little.value("pages_total")
    assert took < seconds + 2 * alone
    os.close(fd)
    run(f"forebay drain {MOUNT}")
    for name in range(number):
        assert (LOWER / ("slow%d" % name)).read_bytes() == b"2" * int(mib * (1 << 20))


def slow_truncation(group):
    """A user in the group truncates a file, and has written into it before what the group's limit makes slow."""
    size, dirty = 8 << 20, 2 << 20
    limit("wbps", "max")
    pid = os.fork()
    if not pid:
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        slow = os.open(MOUNT / "slow", os.O_RDWR | os.O_CREAT)
        os.pwrite(slow, b"o" * size, 0)
        os.fsync(slow)
        wrong = not enters(slow, PAGE, size)
        limit("wbps", 1 << 14)
        os.pwrite(slow, b"d" * dirty, 0)
        os.ftruncate(slow, size)
        os._exit(wrong)
    assert os.waitpid(pid, 0)[1] == 0


def deleted_at_once(little, throttled, log):
    """A user's deletion, beside the slow truncation of another."""
    little.umount()
    run(f"forebay format --force {log} --files 64 {little.cache}")
    little.mount()
    gone = os.open(MOUNT / "gone", os.O_RDWR | os.O_CREAT)
    os.pwrite(gone, b"o" * 256 * PAGE, 0)
    os.fsync(gone)
    for page in range(256):
        os.pwrite(gone, b"g", page * PAGE)
        os.fdatasync(gone)
    assert pages(gone) > 200
    slow_truncation(throttled)
    time.sleep(3)
    os.close(gone)
    os.unlink(MOUNT / "gone")
    free = little.value("pages_free")
    end = time.monotonic() + 60     # the truncation takes two minutes
    while little.value("pages_free") < free + 200 and time.monotonic() < end:
        time.sleep(0.2)
    return little.value("pages_free") >= free + 200


def test_deletion_without_a_name_log(little, throttled):
    """What another user's limit makes slow doesn't delay a deletion where there is no name log."""
    assert deleted_at_once(little, throttled, "")
    limit("wbps", "max")
    little.drain()


def test_workers_pass_over_a_slow_truncation(little, throttled):
    """A truncation that takes minutes to be durable below delays neither another user's deletions nor file records."""
    assert deleted_at_once(little, throttled, "--names 1M")
    for number in range(80):
        with open(MOUNT / f"small{number}", "wb", buffering=0) as small:
            for byte in (b"1", b"2"):
                os.pwrite(small.fileno(), byte * PAGE, 0)
                os.fsync(small.fileno())
    with open(MOUNT / "mapped", "w+b", buffering=0) as file:
        os.ftruncate(file.fileno(), PAGE)
        with Mapping(file.fileno(), PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
            start = time.monotonic()
            mapping.write(0, b"m")
            took = time.monotonic() - start
    print("the store took %.1f s" % took)
    assert took < 40
    end = time.monotonic() + 40         # the store may have taken the first record that the worker made free
    while little.value("files_used") == 64:
        assert time.monotonic() < end
        time.sleep(0.1)
    limit("wbps", "max")
    run(f"forebay drain {MOUNT}")
    assert (LOWER / "slow").read_bytes() == b"d" * (2 << 20) + b"o" * (6 << 20)


def test_direct_read_into_a_mapping_that_is_gone(little, throttled):
    """What a device stores in a page of the file, by a reference from a mapping, is in the file; as on ext4."""
    del little
    source = os.open(MOUNT / "source", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    os.pwritev(source, [aligned(b"s" * (256 << 10))], 0)
    for folder in (LOWER, MOUNT):
        fd = os.open(folder / "target", os.O_RDWR | os.O_CREAT)
        for byte in (b"1", b"2"):
            os.pwrite(fd, byte * 64 * PAGE, 0)
            os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pwrite(fd, b"3", 0)
        os.fdatasync(fd)
        pid = os.fork()
        if not pid:
            (throttled / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
            limit("rbps", 1 << 12)      # a minute; the read goes on when the writes are done, however long they take
            with Mapping(fd, 64 * PAGE) as mapping, asynchronous_read(source, mapping.address, 64 * PAGE) as wait:
                mapping.close()
                time.sleep(0.5)
                os.pwrite(fd, b"w" * 64 * PAGE, 0)
                assert os.pread(fd, 64 * PAGE, 0) == b"w" * 64 * PAGE
                limit("rbps", "max")
                wait()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert os.pread(fd, 64 * PAGE, 0) == b"s" * 64 * PAGE
        os.close(fd)
    os.close(source)

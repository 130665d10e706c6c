# SPDX-License-Identifier: GPL-2.0-only
"""File records of the cache: one user doesn't take them all, and many small files don't use them up."""

import errno
import os
import time

import pytest
from conftest import clean_up
from libc import IOC_PIN, IOC_UNPIN, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, info, on_range
from other_user import as_user
from stack import MOUNT, PAGE, Stack, run, small_cache

FILES = 64
ALICE, BOB = 1234, 1235


@pytest.fixture(name="few", params=["ext4", "xfs"])
def few_fixture(request):
    """A cache with 64 file records, and a folder that all users may write to."""
    clean_up()
    stack = Stack(fs=request.param, cache=small_cache(16)).make()
    stack.umount()
    run(f"forebay format --force --files {FILES} {stack.cache}")
    stack.mount()
    os.chmod(MOUNT, 0o777)
    yield stack
    os.chdir("/")
    stack.destroy()
    clean_up()


def settled(name, pages=1):
    """A file that the lower file system has, as large as that."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(fd, b"o" * pages * PAGE, 0)
    os.fsync(fd)
    return fd


def take_all(number, keep=None):
    """One user's files with a dirty page each, absorbed."""
    for i in range(number):
        fd = settled(f"alice{i}")
        os.pwrite(fd, b"alice", 0)
        os.fdatasync(fd)
        if keep:
            keep(fd)
        else:
            os.close(fd)


def test_another_user_gets_a_record(few):
    """A MAP_SYNC store works before a task gives up waiting, and nothing of the first user's is lost."""
    as_user(ALICE, lambda: take_all(2 * FILES))

    def store():
        fd = settled("bob")
        with Mapping(fd, PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
            begun = time.monotonic()
            mapping.write(0, b"bob")
            return time.monotonic() - begun > 60       # a task gives up after 120

    assert not as_user(BOB, store)
    as_user(ALICE, lambda: take_all(2 * FILES))
    few.remount()
    for i in range(2 * FILES):
        assert (MOUNT / f"alice{i}").read_bytes()[:6] == b"aliceo"
    assert (MOUNT / "bob").read_bytes()[:4] == b"bobo"


def test_many_mappings_at_once(few):
    """More files are mapped with MAP_SYNC, and stored to in turn, than there are records."""
    fds = [settled(f"f{i}") for i in range(2 * FILES)]
    mappings = [Mapping(fd, PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) for fd in fds]
    for turn in range(3):
        for i, mapping in enumerate(mappings):
            mapping.write(turn * 64, b"%d %d" % (turn, i))
    for i, fd in enumerate(fds):
        assert os.pread(fd, 8, 128).startswith(b"2 %d" % i)
        mappings[i].close()
        os.close(fd)
    assert few.value("writeback_errors") == 0


def test_many_small_files(few):
    """Each file is synced again after its creation, and absorbed, even after the table was full once."""
    fds = [settled(f"f{i}") for i in range(10 * FILES)]
    shares = []
    for part in range(0, len(fds), FILES):
        before = few.value("syncs_absorbed")
        for fd in fds[part:part + FILES]:
            await_record(few)
            os.pwrite(fd, b"new", 0)
            os.fdatasync(fd)
        shares.append(few.value("syncs_absorbed") - before)
    assert min(shares[1:]) > FILES // 2, shares
    for fd in fds:
        assert os.pread(fd, 4, 0) == b"newo"
        os.close(fd)


def test_used_records_stay(few):
    """A file that is synced all the time keeps its pages in PMem while other files come and go."""
    hot = settled("hot", 2)
    for i in range(4 * FILES):
        fd = settled(f"f{i}")
        os.pwrite(fd, b"new", 0)
        os.fdatasync(fd)
        os.close(fd)
        os.pwrite(hot, b"hot %d" % i, 0)
        os.fdatasync(hot)
    assert info(hot).out_of_sync + info(hot).clean > 0
    await_record(few)
    os.close(hot)


def await_record(stack):
    """The worker writes files back and takes their records: as fast as storage is, which may be busy."""
    end = time.monotonic() + 60
    while stack.value("files_used") >= stack.value("files_total"):
        assert time.monotonic() < end, "no record becomes free"
        time.sleep(0.01)


def pin(fd):
    """The errno of pinning the first page."""
    try:
        on_range(fd, IOC_PIN, 0, PAGE)
    except OSError as error:
        return error.errno
    return 0


def test_pins_of_one_user(few):
    """One user's pinned files get a quarter of the records, all users' half. A file counts once a user."""
    fds = []

    def pin_all():
        for i in range(FILES // 4):
            fds.append(settled(f"{os.getuid()}.{i}", 2))
            if pin(fds[-1]) or pin(fds[-1]):
                return 1
            on_range(fds[-1], IOC_PIN, PAGE, PAGE)
        fds.append(settled(f"{os.getuid()}.more"))
        if pin(fds[-1]) != errno.ENOMEM:
            return 2
        on_range(fds[0], IOC_UNPIN, 0, PAGE)
        if pin(fds[-1]) != errno.ENOMEM:
            return 3
        on_range(fds[0], IOC_UNPIN, PAGE, PAGE)
        return 4 if pin(fds[-1]) else 0

    assert as_user(ALICE, pin_all) == 0
    assert few.value("pages_pinned") == 0
    kept = [settled(f"kept{i}") for i in range(FILES // 2)]
    assert [pin(fd) for fd in kept] == [0] * (FILES // 2)
    assert as_user(BOB, lambda: pin(settled("bob"))) == errno.ENOMEM
    os.close(kept.pop())
    assert as_user(BOB, lambda: pin(settled("bob"))) == 0
    as_user(ALICE, lambda: take_all(2 * FILES))
    for fd in kept:
        os.close(fd)

# SPDX-License-Identifier: GPL-2.0-only
"""Quota and reserved blocks limit mapped stores, too: a page is dirty in PMem only with space below."""

import errno
import os
import signal

import pytest
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, error_of, pages
from other_user import become
from stack import LOWER, MOUNT, PAGE, run

USER = 1234
MIB = 1 << 20
LIMIT = 8 * MIB
HOLES = 32 * MIB
PARTLY = 2500           # pages
SLACK = 64 * 1024       # what the lower file system needs to find the file's blocks

pytestmark = pytest.mark.slow       # for lockdep: docs/decisions/locks.md


@pytest.fixture(name="limited")
def limited_fixture(stack):
    """8 MiB for the user, on a file system with room for more."""
    stack.umount()
    run(f"umount {LOWER}; tune2fs -O quota -Q usrquota {stack.device}; mount -o usrquota {stack.device} {LOWER}")
    run(f"setquota -u {USER} 0 {LIMIT // 1024} 0 0 {LOWER}")
    stack.mount()
    os.chmod(MOUNT, 0o777)
    return stack


@pytest.fixture(name="full")
def full_fixture(stack):
    """No block is left but those reserved for root."""
    stack.destroy()
    stack.mib = 96
    stack.make()
    os.chmod(MOUNT, 0o777)
    as_user(lambda tell: fill(MOUNT / "filler"))
    os.sync()
    as_user(lambda tell: fill(MOUNT / "filler2"))
    return stack


def fill(path):
    """Writes until there is no space."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for size in (MIB, PAGE):
        try:
            while True:
                os.write(fd, b"f" * size)
        except OSError as err:
            assert err.errno == errno.ENOSPC, err
        os.fsync(fd)
    os.close(fd)


def as_user(run_it):
    """Calls it in a child of another user; returns the child's end, and how many pages it changed."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            become(USER)
            status = run_it(lambda: os.write(writer, b".")) or 0
        finally:
            os._exit(status)
    os.close(writer)
    changed = 0
    while got := os.read(reader, 65536):
        changed += len(got)
    os.close(reader)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), changed


def holes_in_pmem(path):
    """A file of holes, mapped with MAP_SYNC, each page read once."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, HOLES)
    mapping = Mapping(fd, HOLES, MAP_SHARED_VALIDATE | MAP_SYNC)
    for page in range(HOLES // PAGE):
        mapping.read(page * PAGE, 1)
    return fd, mapping


def store(tell):
    """Stores to each page; SIGBUS when there is no space."""
    _, mapping = holes_in_pmem(MOUNT / "holes")
    for page in range(HOLES // PAGE):
        mapping.write(page * PAGE, b"stored")
        tell()


def write(tell):
    """Writes to each page."""
    fd, _ = holes_in_pmem(MOUNT / "holes")
    try:
        for page in range(HOLES // PAGE):
            os.pwrite(fd, b"written", page * PAGE)
            tell()
    except OSError as err:
        assert err.errno in (errno.ENOSPC, errno.EDQUOT), err
        return 42
    return 0


def drop_and_measure(stack):
    """Drains the cache; returns the bytes that the user's file then has below."""
    with open(MOUNT / "holes", "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    stack.drain()
    os.sync()
    return os.stat(LOWER / "holes").st_blocks * 512


@pytest.mark.parametrize("change,end", [(store, -signal.SIGBUS), (write, 42)], ids=["store", "write"])
def test_quota(limited, change, end):
    """At the limit a store gets SIGBUS, a write an error. No more than the limit is below afterwards."""
    ended, changed = as_user(change)
    used = drop_and_measure(limited)
    print(f"ended with {ended} after {changed} pages; {used >> 10} KiB below, limit {LIMIT >> 10} KiB")
    assert used <= LIMIT
    assert ended == end
    assert LIMIT // 2 < changed * PAGE <= LIMIT
    assert (LOWER / "holes").read_bytes().count(b"stored" if change is store else b"written") == changed


@pytest.mark.parametrize("change,end", [(store, -signal.SIGBUS), (write, 42)], ids=["store", "write"])
def test_reserved_blocks(full, change, end):
    """With no block left for users, a user takes none of root's."""
    before = os.statvfs(LOWER)
    reserved = (before.f_bfree - before.f_bavail) * before.f_frsize
    ended, changed = as_user(change)
    used = drop_and_measure(full)
    after = os.statvfs(LOWER)
    print(f"ended with {ended} after {changed} pages; {used >> 10} KiB below; reserved {reserved >> 10} KiB, "
          f"free before {before.f_bfree * before.f_frsize >> 10} KiB, after {after.f_bfree * after.f_frsize >> 10} KiB")
    assert after.f_bfree * after.f_frsize >= reserved - SLACK
    assert ended == end
    assert used <= before.f_bavail * before.f_frsize + SLACK


@pytest.fixture(name="small_blocks")
def small_blocks_fixture(stack):
    """8 MiB for the user, on a file system with four blocks for a page."""
    stack.umount()
    run(f"umount {LOWER}; mkfs.ext4 -Fq -b 1024 -O quota -E quotatype=usrquota,nodiscard {stack.device} 256M")
    run(f"mount -o usrquota {stack.device} {LOWER} && setquota -u {USER} 0 {LIMIT // 1024} 0 0 {LOWER}")
    run(f"forebay format --force {stack.cache}")
    stack.mount()
    os.chmod(MOUNT, 0o777)
    return stack


def fill_partly(change):
    """Brings pages to PMem of which one block is written, then writes or stores to the others; returns when there is no space."""
    def run_it(tell):
        fd = os.open(MOUNT / "holes", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, PARTLY * PAGE)
        os.fsync(fd)
        os.pread(fd, PARTLY * PAGE, 0)      # a folio of which a part was never read doesn't move
        for page in range(PARTLY):
            os.pwrite(fd, b"part", page * PAGE)
            if page % 16 == 15:
                os.fsync(fd)
        assert pages(fd) > PARTLY * 3 // 4, f"{pages(fd)} pages are in PMem"
        mapping = Mapping(fd, PARTLY * PAGE)
        for page in range(PARTLY):
            if change == "store":
                mapping.write(page * PAGE + 3 * 1024, b"whole")
            elif error_of(os.pwrite, fd, b"whole" * (PAGE // 5), page * PAGE) == errno.EDQUOT:
                return 42
            tell()
        return 0
    return run_it


@pytest.mark.parametrize("change,end", [("store", -signal.SIGBUS), ("write", 42)], ids=["store", "write"])
def test_holes_inside_of_pages(small_blocks, change, end):
    """Where a block is smaller than a page, a page that was written in part has no space for the rest of it."""
    ended, changed = as_user(fill_partly(change))
    print(f"ended with {ended} after {changed} pages; {small_blocks.value('pages_out_of_sync')} are out-of-sync")
    small_blocks.drain()
    assert ended == end
    assert LIMIT // 2 < changed * PAGE <= LIMIT
    os.sync()
    assert os.stat(LOWER / "holes").st_blocks * 512 <= LIMIT + SLACK
    below = (LOWER / "holes").read_bytes()
    assert [page for page in range(PARTLY) if b"whole" in below[page * PAGE:(page + 1) * PAGE]] == list(range(changed))

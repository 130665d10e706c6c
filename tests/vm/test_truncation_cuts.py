# SPDX-License-Identifier: GPL-2.0-only
"""Truncations that a sync call doesn't make durable below, because the file record has them: what power cuts leave."""

import os
import time

import pytest
from conftest import clean_up
from libc import IOC_PIN, on_range, pages, syncfs
from names_pair import NamesPair
from stack import LOWER, MOUNT, PAGE, counter, run
from test_cuts import LEFT, LEFT_LOWER, pair_fixture, settled, wait_for
from test_emu import module_fixture

emulated_devices = module_fixture       # for each test here, too
two_file_systems = pair_fixture


def synced_in_pmem(pair, fd):
    """An fdatasync that doesn't go below."""
    before = counter(pair.cache, "syncs_absorbed")
    os.fdatasync(fd)
    assert counter(pair.cache, "syncs_absorbed") == before + 1


def rewritten(pair, fd, pages, byte):
    """The first pages of a file, in PMem."""
    for page in range(pages):
        os.pwrite(fd, byte * PAGE, page * PAGE)
    synced_in_pmem(pair, fd)


@pytest.mark.parametrize("size", (0, 100, PAGE, 2 * PAGE + 1000))
def test_truncation(pair, size):
    """Of a file that has pages in PMem: exact after the sync call."""
    fd = settled(12)
    rewritten(pair, fd, 4, b"n")
    os.ftruncate(fd, size)
    synced_in_pmem(pair, fd)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"n" * size
    os.close(fd)


@pytest.mark.parametrize("first", (0, PAGE, PAGE + 1000))
def test_written_again(pair, first):
    """As SQLite does with its journal: truncated, and written again from there, less than before."""
    fd = settled(12)
    rewritten(pair, fd, 4, b"n")
    expected = b"n" * first
    for byte in (b"a", b"b"):
        os.ftruncate(fd, first)
        synced_in_pmem(pair, fd)
        os.pwrite(fd, byte * 5000, first)
        os.pwrite(fd, byte * 5000, first + 5000)
        synced_in_pmem(pair, fd)
        os.pwrite(fd, b"h" * 12, first)
        synced_in_pmem(pair, fd)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == expected + b"h" * 12 + b"b" * 9988
    os.close(fd)


def test_not_synced(pair):
    """What was written behind a truncation, and not synced, may be lost; the truncated bytes don't come back."""
    fd = settled(12)
    rewritten(pair, fd, 4, b"n")
    os.ftruncate(fd, PAGE)
    os.pwrite(fd, b"a" * PAGE, PAGE)
    synced_in_pmem(pair, fd)
    os.pwrite(fd, b"b" * PAGE, 2 * PAGE)
    for left in pair.after_cuts():
        found = (left / "f").read_bytes()
        assert found[:2 * PAGE] == b"n" * PAGE + b"a" * PAGE and not found[2 * PAGE:].strip(b"b")
    os.close(fd)


def test_hole(pair):
    """Behind a truncation storage still has old bytes where PMem has no page: the lower file has to be synced."""
    fd = settled(12)
    rewritten(pair, fd, 4, b"n")
    os.ftruncate(fd, PAGE)
    os.pwrite(fd, b"a" * PAGE, 3 * PAGE)
    before = counter(pair.cache, "syncs_absorbed")
    os.fdatasync(fd)
    assert counter(pair.cache, "syncs_absorbed") == before
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"n" * PAGE + bytes(2 * PAGE) + b"a" * PAGE
    os.close(fd)


def test_page_of_the_new_end(pair):
    """The page that the file ends in now is on storage alone, with old bytes behind the end."""
    fd = settled(12)
    os.pwrite(fd, b"n" * PAGE, 8 * PAGE)
    synced_in_pmem(pair, fd)
    os.ftruncate(fd, PAGE + 1000)
    synced_in_pmem(pair, fd)
    os.pwrite(fd, b"a" * PAGE, 2 * PAGE)
    os.fdatasync(fd)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"\1" * PAGE + b"\2" * 1000 + bytes(PAGE - 1000) + b"a" * PAGE
    os.close(fd)


def test_truncated_again(pair):
    """The record says "exactly" of one size after the other, longer ones and shorter ones."""
    fd = settled(12)
    rewritten(pair, fd, 4, b"n")
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"a" * 3 * PAGE, 0)
    synced_in_pmem(pair, fd)
    for byte in (b"b", b"c"):
        os.pwrite(fd, byte * 3 * PAGE, 0)
        synced_in_pmem(pair, fd)
        os.ftruncate(fd, PAGE)
        synced_in_pmem(pair, fd)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"c" * PAGE
    os.close(fd)


@pytest.fixture(name="named")
def named_fixture():
    """A fresh pair of file systems, with a name log: there a new file's first sync needn't go below."""
    yield NamesPair()
    run(f"umount {LEFT}; umount {LEFT_LOWER}", False)
    clean_up()


def sync_below():
    """Storage gets what the lower file system has of the file, as it may at any time."""
    below = os.open(LOWER / "f", os.O_RDONLY)
    os.fsync(below)
    os.close(below)


def fresh(count, on_storage):
    """Makes a file of so many pages that no sync call was made for. Storage may have it all the same."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.pwrite(fd, b"o" * count * PAGE, 0)
    if on_storage:
        sync_below()
    return fd


@pytest.mark.parametrize("on_storage", (True, False))
@pytest.mark.parametrize("first", (0, 100, PAGE, 2 * PAGE + 1000))
def test_new_file_written_again(named, first, on_storage):
    """Truncated, and written again from there, before its first sync."""
    fd = fresh(5, on_storage)
    os.ftruncate(fd, first)
    os.pwrite(fd, b"n" * 3000, first)
    synced_in_pmem(named, fd)
    for left in named.after_cuts(not on_storage):
        assert (left / "f").read_bytes() == b"o" * first + b"n" * 3000
    os.close(fd)


@pytest.mark.parametrize("on_storage", (True, False))
@pytest.mark.parametrize("size", (0, 1000, 2 * PAGE))
def test_new_file_truncated(named, size, on_storage):
    """Written from the beginning, and truncated behind that, as dpkg does with its updates."""
    fd = fresh(5, on_storage)
    os.pwrite(fd, b"n" * size, 0)
    os.ftruncate(fd, size)
    synced_in_pmem(named, fd)
    for left in named.after_cuts(not on_storage):
        assert (left / "f").read_bytes() == b"n" * size
    os.close(fd)


def test_new_file_truncated_twice(named):
    """To more the second time: what lies between the two ends must not come from storage."""
    fd = fresh(5, True)
    os.ftruncate(fd, 100)
    os.pwrite(fd, b"a" * PAGE, 4 * PAGE)
    os.ftruncate(fd, 3 * PAGE)
    os.fdatasync(fd)
    for left in named.after_cuts(False):
        assert (left / "f").read_bytes() == b"o" * 100 + bytes(3 * PAGE - 100)
    os.close(fd)


def test_new_file_with_a_hole(named):
    """Behind the truncation PMem doesn't have every page: the lower file has to be synced."""
    fd = fresh(5, True)
    os.ftruncate(fd, PAGE)
    os.pwrite(fd, b"a" * PAGE, 3 * PAGE)
    before = counter(named.cache, "syncs_absorbed")
    os.fdatasync(fd)
    assert counter(named.cache, "syncs_absorbed") == before
    for left in named.after_cuts(False):
        assert (left / "f").read_bytes() == b"o" * PAGE + bytes(2 * PAGE) + b"a" * PAGE
    os.close(fd)


def test_new_file_syncfs(named):
    """What syncfs has made durable below, behind the truncation, is not lost to a later sync."""
    fd = fresh(5, True)
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"n" * 3 * PAGE, 0)
    os.sync()
    for left in named.after_cuts(False):
        assert (left / "f").read_bytes() == b"n" * 3 * PAGE
    os.pwrite(fd, b"m" * PAGE, 2 * PAGE)
    os.fdatasync(fd)
    for left in named.after_cuts(False):
        assert (left / "f").read_bytes() == b"n" * 2 * PAGE + b"m" * PAGE
    os.close(fd)


def test_new_file_syncfs_of_what_grew_in_pmem(named):
    """A page is in PMem before the first sync, and a write to it makes the file grow there alone."""
    fd = fresh(5, True)
    os.ftruncate(fd, 100)
    on_range(fd, IOC_PIN, 0, PAGE)
    os.pwrite(fd, b"a" * 50, 0)
    assert pages(fd) == 1
    os.pwrite(fd, b"n" * 3000, 100)
    assert (LOWER / "f").stat().st_size == 100
    syncfs(fd)
    for left in named.after_cuts(False):
        assert (left / "f").read_bytes() == b"a" * 50 + b"o" * 50 + b"n" * 3000
    os.close(fd)


def test_new_file_grows_after_a_while(named):
    """The record says "exactly" for a second or so. Later, what storage has of an append stays there after a cut."""
    fd = fresh(5, True)
    os.ftruncate(fd, 0)
    time.sleep(2)
    os.pwrite(fd, b"n" * PAGE, 0)
    synced_in_pmem(named, fd)
    wait_for(lambda: not named.says_exactly())
    assert named.record_states() == [1]
    os.pwrite(fd, b"m" * PAGE, PAGE)
    sync_below()
    for left in named.after_cuts(False):
        assert (left / "f").read_bytes() == b"n" * PAGE + b"m" * PAGE
    os.close(fd)


def test_new_file_immutable(named):
    """Recovery can't truncate it, so the truncation has to be durable below."""
    fd = fresh(5, True)
    os.ftruncate(fd, 0)
    run(f"chattr +i {MOUNT}/f")
    os.fsync(fd)
    for left in named.after_cuts(False):
        assert (left / "f").read_bytes() == b""
    run(f"chattr -i {MOUNT}/f")
    os.close(fd)


def test_same_size(named):
    """A truncation to the size that the file has needs nothing below."""
    fd = fresh(2, False)
    os.ftruncate(fd, 2 * PAGE)
    synced_in_pmem(named, fd)
    for left in named.after_cuts():
        assert (left / "f").read_bytes() == b"o" * 2 * PAGE
    os.close(fd)

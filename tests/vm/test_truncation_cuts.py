# SPDX-License-Identifier: GPL-2.0-only
"""Truncations that a sync call doesn't make durable below, because the file record has them: what power cuts leave."""

import os

import pytest
from stack import PAGE, counter
from test_cuts import pair_fixture, settled
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

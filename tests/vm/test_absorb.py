# SPDX-License-Identifier: GPL-2.0-only
"""Large and scattered syncs: PMem takes them while it has room and storage is slower. test_emu.py has PMem that is slower."""

import mmap
import os
import time

import pytest
from libc import MAP_SHARED, Mapping, info
from mapped import DEBUG, slow_device
from stack import LOWER, MOUNT, PAGE, SSD, Stack, run, small_cache

MEMORY, MEMORY_MIB = "/run/storage", 64
SPREAD = 8              # one page of so many is written
# 4 KiB to 4 MiB; to 256 KiB on the debug kernel, whose checks make copies dear: larger pieces may go below there.
PIECES = tuple(4 ** n for n in range(4 if DEBUG else 6))


def old_file(name, pages):
    """An open file whose name, size and space are durable below; none of it is in PMem."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
    for page in range(0, pages, 256):
        os.pwrite(fd, b"0" * min(256, pages - page) * PAGE, page * PAGE)
    os.fsync(fd)
    run(f"forebay drop {MOUNT / name}")
    os.sync()
    return fd


def scattered(fd, nr, first, text=b"scattered"):
    """Writes so many pages, no two of them neighbours, in an order that isn't the file's; syncs."""
    for n in sorted(range(nr), key=lambda n: n * 7919 % nr):
        os.pwrite(fd, text, (first + n * SPREAD) * PAGE)
    os.fdatasync(fd)


def numbers(stack):
    """The counters of syncs and of pages that moved."""
    return [stack.value(name) for name in ("syncs_absorbed", "syncs_lower", "pages_absorbed")]


@pytest.mark.persistence
@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}], indirect=True, ids=["ext4", "xfs"])
def test_scattered_pages_are_absorbed(stack):
    """A B-tree's commit: 8 to 256 pages here and there. Each round finds them below."""
    sizes = (8, 16, 17, 32, 64, 100, 128, 256)
    fd = old_file("f", 256 * SPREAD)
    for turn, nr in enumerate(sizes):
        absorbed, below, moved = numbers(stack)
        writes = stack.writes()
        scattered(fd, nr, turn)
        assert numbers(stack) == [absorbed + 1, below, moved + nr], nr
        assert stack.writes() - writes < 10, nr
    assert info(fd).out_of_sync == sum(sizes)
    os.close(fd)
    stack.remount()
    contents = (MOUNT / "f").read_bytes()
    assert all(contents[(turn + n * SPREAD) * PAGE:][:9] == b"scattered" for turn, nr in enumerate(sizes) for n in range(nr))


@pytest.mark.persistence
@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}], indirect=True, ids=["ext4", "xfs"])
def test_one_piece_is_absorbed(stack):
    """A WAL's segment, a batch: 4 KiB to 4 MiB at the end of a file, and then within it."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.fsync(fd)
    for pages in PIECES:
        absorbed, below, _ = numbers(stack)
        os.pwrite(fd, b"a" * pages * PAGE, os.fstat(fd).st_size)
        os.fdatasync(fd)
        assert numbers(stack)[:2] == [absorbed + 1, below], pages
    os.close(fd)
    size = os.stat(MOUNT / "f").st_size
    stack.remount()
    assert (MOUNT / "f").read_bytes() == b"a" * size
    fd = old_file("g", sum(PIECES))
    at = 0
    for pages in PIECES:
        absorbed, below, moved = numbers(stack)
        os.pwrite(fd, b"b" * pages * PAGE, at * PAGE)
        os.fdatasync(fd)
        assert numbers(stack) == [absorbed + 1, below, moved + pages], pages
        at += pages
    os.close(fd)
    stack.remount()
    assert (MOUNT / "g").read_bytes() == b"b" * at * PAGE


def test_scattered_stores_are_absorbed(stack):
    """The same through a mapping, which LMDB may write by."""
    fd = old_file("f", 100 * SPREAD)
    absorbed, below, moved = numbers(stack)
    with Mapping(fd, 100 * SPREAD * PAGE, MAP_SHARED) as mapping:
        for n in range(100):
            mapping.write(n * SPREAD * PAGE, b"stored")
        mapping.sync()
    assert numbers(stack) == [absorbed + 1, below, moved + 100]
    os.close(fd)


def test_source_that_is_not_in_the_page_table(stack):
    """A process writes from shared memory that only others have touched, as PostgreSQL's checkpointer does."""
    fd = old_file("f", 64)
    memory = os.memfd_create("shared")
    os.pwrite(memory, b"s" * 32 * PAGE, 0)
    absorbed, below, moved = numbers(stack)
    with mmap.mmap(memory, 32 * PAGE, prot=mmap.PROT_READ) as source:
        os.pwrite(fd, source, 8 * PAGE)
    os.fdatasync(fd)
    assert numbers(stack) == [absorbed + 1, below, moved + 32]
    os.close(fd)
    os.close(memory)


def test_too_many_ranges_go_below(stack):
    """The pages of a sync are known up to a number of ranges; beyond it the sync is the lower file system's."""
    fd = old_file("f", 1100 * 2)
    absorbed, below, moved = numbers(stack)
    for n in range(1100):
        os.pwrite(fd, b"many", n * 2 * PAGE)
    os.fdatasync(fd)
    assert numbers(stack) == [absorbed, below + 1, moved]
    for n in range(1100):
        os.pwrite(fd, b"again", n * 2 * PAGE)
    for n in range(2200):
        os.pwrite(fd, b"joined", n * PAGE)
    os.fdatasync(fd)
    assert numbers(stack)[1] == below + 2, "forgotten once, they stay unknown until a sync"
    for n in range(0, 2000, 2):
        os.pwrite(fd, b"many", n * PAGE)
    os.fdatasync(fd)
    assert numbers(stack) == [absorbed + 1, below + 2, moved + 1000]
    os.close(fd)
    stack.remount()
    contents = (MOUNT / "f").read_bytes()
    assert all(contents[n * PAGE:][:4] == (b"many" if n < 2000 and not n % 2 else b"join") for n in range(2200))


def written_in_pieces(stack, fd, at, pages):
    """One sync of so many pages; True if it was absorbed."""
    absorbed = stack.value("syncs_absorbed")
    os.pwrite(fd, b"%08d" % at * (pages * PAGE // 8), at * PAGE)
    os.fdatasync(fd)
    return stack.value("syncs_absorbed") > absorbed


def test_short_cache(stack):
    """A large sync leaves a reserve: it goes below, small ones are absorbed still. When pages were written back
    large ones are, too."""
    stack.destroy()
    run(f"dd if=/dev/zero of={SSD} bs=1M count=1 status=none")
    stack = Stack(cache=small_cache(16), device=slow_device(512 * 2048, SSD, 200)).make()
    total = stack.value("pages_total")
    fd, at = old_file("f", 3 * total), 0
    while written_in_pieces(stack, fd, at, 128):
        at += 128
        assert at < 2 * total, "pages that were never written back can't have found room"
    assert stack.value("pages_free") >= total // 8 - 256, "of which a writer takes a page at a time"
    assert at > total // 2, "an empty cache has room"
    assert stack.value("cache_full") > 0
    assert written_in_pieces(stack, fd, at + 128, 4)
    deadline, at = time.monotonic() + 120, at + 256
    while not written_in_pieces(stack, fd, at, 128):
        at += 128
        assert time.monotonic() < deadline and at < 3 * total - 256, stack.status()
        time.sleep(0.5)
    assert stack.value("pages_reclaimed") > 0
    os.close(fd)
    stack.umount()
    below = (LOWER / "f").read_bytes()
    assert [below[page * PAGE:][:8] for page in range(0, at + 128, 128)] == [b"%08d" % page for page in range(0, at + 128, 128)]
    stack.destroy()


def test_one_sync_takes_no_more_than_its_share(stack):
    """Free pages are other files', too."""
    total = stack.value("pages_total")
    fd = old_file("f", total)
    most = stack.value("absorb_max")
    assert total // 3 < most < total // 2
    absorbed, below, moved = numbers(stack)
    os.pwrite(fd, b"l" * (most + 16) * PAGE, 0)
    os.fdatasync(fd)
    assert numbers(stack) == [absorbed, below + 1, moved]
    assert stack.status()[0]["absorb_max"] == most
    os.close(fd)


def test_costs_follow_storage(stack):
    """While syncs are absorbed, what is written back tells that storage has become slower, or faster. Storage is in memory: the
    SSD is as slow as the host's disk."""
    stack.destroy()
    run(f"modprobe loop; truncate -s {MEMORY_MIB}M {MEMORY}")
    memory = run(f"losetup -f --show {MEMORY}").strip()
    device = slow_device(MEMORY_MIB * 2048, memory, 0)
    stack = Stack(mib=MEMORY_MIB, device=device).make()
    fd = old_file("f", 64)

    def written_back(times):
        for turn in range(times):
            os.pwrite(fd, b"%08d" % turn, turn % 8 * PAGE)
            os.fdatasync(fd)
            stack.drain()
        return stack.value("lower_sync_ns")

    def delay(milliseconds):
        run(f"dmsetup suspend slow && dmsetup reload slow --table "
            f"'0 {MEMORY_MIB * 2048} delay {memory} 0 0 {memory} 0 {milliseconds}' && dmsetup resume slow")

    fast = written_back(20)
    below = stack.value("syncs_lower")
    delay(100)
    slow = written_back(20)
    assert slow > 75e6 > fast
    delay(0)
    assert written_back(20) < slow / 4
    assert stack.value("syncs_lower") == below, "no sync call had to wait for that"
    os.close(fd)
    stack.destroy()
    run(f"dmsetup remove --retry slow; losetup -d {memory}; rm {MEMORY}")


def test_status_tells_the_costs(stack):
    fd = old_file("f", 64)
    for turn in range(8):
        os.pwrite(fd, b"x" * 40 * PAGE, turn % 2 * PAGE)
        os.fdatasync(fd)
        run(f"forebay drop {MOUNT / 'f'}")
    values = stack.status()[0]
    for name in ("lower_sync_ns", "lower_sync_page_ns", "absorb_ns", "absorb_page_ns"):
        assert 0 < values[name] < 10 ** 10, name
    table = run(f"forebay status {MOUNT}")
    assert "a sync below" in table and "syncs of up to" in table
    os.close(fd)
    stack.umount()
    stack.mount("mode=explicit")
    assert stack.value("absorb_max") == 0 and "syncs of up to" not in run(f"forebay status {MOUNT}")

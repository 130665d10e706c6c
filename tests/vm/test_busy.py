# SPDX-License-Identifier: GPL-2.0-only
"""Pages that a pipe holds while their file is truncated or deleted, and mappings made in other ways than
mmap(2)."""

import contextlib
import ctypes
import errno
import os
import time
from pathlib import Path

import pytest
from libc import (IOC_PIN, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, asynchronous_read, error_of,
                  fallocate, on_range, pages, syscall, vmsplice)
from stack import MOUNT, PAGE, run, small_cache

REMAP_FILE_PAGES = 216
MADV_REMOVE = 9
PUNCH = 3


def small(stack):
    """Replaces the stack's cache with one that other files soon fill."""
    stack.umount()
    stack.cache = small_cache(4)
    run(f"forebay format --force {stack.cache}")
    stack.mount()


def held(contents, nr=8):
    """An open file with so many pages in PMem, and a pipe that holds them."""
    fd = os.open(MOUNT / "held", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, contents * (nr * PAGE // len(contents)), 0)
    os.fsync(fd)
    reader, writer = os.pipe()
    with Mapping(fd, nr * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        for page in range(nr):
            mapping.write(page * PAGE, contents[:1])
        assert vmsplice(writer, mapping.address, nr * PAGE) == nr * PAGE
    return fd, reader, writer


def fill_the_cache(stack):
    """Writes to another file until each free page of the cache has been used."""
    enough = stack.value("pages_absorbed") + 3 * stack.value("pages_total") // 2
    deadline = time.time() + 300
    with open(MOUNT / "other", "wb", buffering=0) as file:
        while stack.value("pages_absorbed") < enough and time.time() < deadline:
            for _ in range(32):
                file.write(b"other!!!" * (16 * PAGE // 8))
                os.fdatasync(file.fileno())
            if not stack.value("pages_free"):
                run(f"forebay drain {MOUNT}")
    assert stack.value("pages_absorbed") >= enough, run(f"forebay status {MOUNT}")


def wait_until_free(stack, nr):
    """Waits until so many pages are free; held pages must become free soon after their release."""
    deadline = time.time() + 120
    while stack.value("pages_free") < nr and time.time() < deadline:
        fill_the_cache(stack)
        os.unlink(MOUNT / "other")
        os.sync()
        time.sleep(1.2)
    assert stack.value("pages_free") >= nr


def test_deleted_file(stack):
    """Pages of a deleted file that a pipe holds go to no other file until the pipe releases them. Then
    they are used again."""
    small(stack)
    fd, reader, writer = held(b"secret__")
    assert pages(fd) == 8
    os.close(fd)
    os.unlink(MOUNT / "held")
    os.sync()
    time.sleep(1.5)
    fill_the_cache(stack)
    assert os.read(reader, 8 * PAGE) == b"secret__" * (PAGE // 8) * 8
    os.close(reader)
    os.close(writer)
    os.unlink(MOUNT / "other")
    wait_until_free(stack, stack.value("pages_total") - 16)


def test_truncated_file(stack):
    """Truncation doesn't wait until a held page is released, since the truncating task itself may hold
    it."""
    small(stack)
    fd, reader, writer = held(b"secret__")
    os.ftruncate(fd, 0)
    os.sync()
    assert pages(fd) == 0
    os.pwrite(fd, b"new" * PAGE, 0)
    os.fsync(fd)
    fill_the_cache(stack)
    assert os.read(reader, 8 * PAGE) == b"secret__" * (PAGE // 8) * 8
    assert os.pread(fd, 3 * PAGE + 1, 0) == b"new" * PAGE
    for end in (fd, reader, writer):
        os.close(end)


def test_hole_in_clean_pages(stack):
    """Punching a hole doesn't wait for held clean pages, either. Held out-of-sync pages are busy
    (test_drop.py)."""
    small(stack)
    fd, reader, writer = held(b"secret__")
    os.read(reader, 8 * PAGE)
    run(f"forebay drain {MOUNT}")
    with Mapping(fd, 8 * PAGE, MAP_SHARED) as mapping:
        assert mapping.read(PAGE, 8) == b"secret__"
        vmsplice(writer, mapping.address, 8 * PAGE)
    fallocate(fd, PUNCH, 0, 8 * PAGE)
    assert os.pread(fd, 8 * PAGE, 0) == bytes(8 * PAGE)
    for end in (fd, reader, writer):
        os.close(end)


def test_unmount_with_a_held_page(stack):
    """Unmount gives the cache back. The next mount doesn't hand out a page that is still held."""
    small(stack)
    fd, reader, writer = held(b"secret__")
    os.close(fd)
    os.unlink(MOUNT / "held")
    stack.umount()
    stack.mount()
    fill_the_cache(stack)
    assert os.read(reader, 8 * PAGE) == b"secret__" * (PAGE // 8) * 8
    os.close(reader)
    os.close(writer)


def forget_inodes():
    """Inodes and names that no task uses leave memory; the page cache stays."""
    for _ in range(3):
        Path("/proc/sys/vm/drop_caches").write_text("2", encoding="ascii")


@contextlib.contextmanager
def slow_zeros():
    """A device of zeros that answers when the function that this gives is called."""
    run("modprobe dm-zero && dmsetup create slow --table '0 64 zero' && dmsetup mknodes")
    source = os.open("/dev/mapper/slow", os.O_RDONLY | os.O_DIRECT)
    run("dmsetup suspend --noflush --nolockfs slow")
    try:
        yield source, lambda: run("dmsetup resume slow")
    finally:
        run("dmsetup resume slow")
        os.close(source)
        run("dmsetup remove --retry slow")


@pytest.fixture(name="left")
def left_fixture(stack):
    """A file whose inode has left memory and come back. A device will store zeros to its first page: the
    function that has it do so."""
    stack.umount()
    stack.mount("mode=explicit")
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"a" * PAGE, 0)
    with slow_zeros() as (source, answers):
        mapping = Mapping(fd, PAGE)
        mapping.write(0, b"b" * PAGE)
        with asynchronous_read(source, mapping.address, PAGE) as wait:
            mapping.close()
            os.fsync(fd)
            os.close(fd)
            forget_inodes()
            fd = os.open(MOUNT / "f", os.O_RDWR)
            os.fsync(fd)

            def stores():
                answers()
                assert wait() == PAGE
                assert os.pread(fd, PAGE, 0) == bytes(PAGE)

            yield fd, stores
            answers()
    os.close(fd)
    forget_inodes()
    assert (MOUNT / "f").read_bytes() == bytes(PAGE)


def goes_below(stack, fd):
    """Whether a sync goes to the lower file system."""
    before = stack.value("syncs_lower")
    os.fsync(fd)
    return stack.value("syncs_lower") > before


def test_sync_of_a_held_page_of_a_file_that_left_memory(stack, left):
    """Each sync makes it durable, for no call tells when the device has stored."""
    fd, stores = left
    assert goes_below(stack, fd) and goes_below(stack, fd)
    stores()
    assert goes_below(stack, fd) and not goes_below(stack, fd)


def test_move_of_a_held_page_of_a_file_that_left_memory(stack, left):
    """It doesn't move to PMem, where what the device stores in the lower page cache would be in no file."""
    del stack
    fd, stores = left
    pinned = error_of(on_range, fd, IOC_PIN, 0, PAGE)
    stores()
    assert pinned == errno.EBUSY
    on_range(fd, IOC_PIN, 0, PAGE)
    assert os.pread(fd, PAGE, 0) == bytes(PAGE)


@pytest.fixture(name="four")
def four_fixture(folder):
    """An open file of four synced pages."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"a" * 4 * PAGE, 0)
    os.fsync(fd)
    yield fd
    os.close(fd)


def test_remapped_pages(four):
    """remap_file_pages() makes a new mapping, which shows the pages in PMem, too."""
    with Mapping(four, 4 * PAGE) as mapping:
        os.pwrite(four, b"b" * PAGE, PAGE)
        syscall(REMAP_FILE_PAGES, ctypes.c_void_p(mapping.address + 2 * PAGE), ctypes.c_size_t(PAGE), 0, ctypes.c_size_t(1), 0)
        assert mapping.read(2 * PAGE, 8) == b"bbbbbbbb"
        mapping.write(2 * PAGE, b"stored")
        assert os.pread(four, 6, PAGE) == b"stored"
        assert mapping.read(PAGE, 6) == b"stored"


def test_madv_remove(four):
    """A hole through a mapping, of pages in PMem."""
    with Mapping(four, 4 * PAGE) as mapping:
        assert ctypes.CDLL(None).madvise(ctypes.c_void_p(mapping.address + PAGE), ctypes.c_size_t(PAGE), MADV_REMOVE) == 0
        assert mapping.read(PAGE, PAGE) == bytes(PAGE)
    assert os.pread(four, 4 * PAGE, 0) == b"a" * PAGE + bytes(PAGE) + b"a" * 2 * PAGE


@pytest.mark.parametrize("stack", [{"fs": "xfs"}], indirect=True)
def test_place_that_no_record_can_name(stack):
    """No page record can name an offset beyond 4 PiB, which xfs has: such pages are synced to storage."""
    fd = os.open(MOUNT / "far", os.O_RDWR | os.O_CREAT)
    for place, contents in ((0, b"old!"), (1 << 52, b"old!"), (0, b"near"), (1 << 52, b"far!")):
        os.pwrite(fd, contents * 1024, place)
        os.fsync(fd)
    assert pages(fd) == 1
    stack.drain()
    for place, contents in ((0, b"near"), (1 << 52, b"far!")):
        assert os.pread(fd, PAGE, place) == contents * 1024
    os.close(fd)

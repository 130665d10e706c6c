# SPDX-License-Identifier: GPL-2.0-only
"""DAX mappings of a part of a file, attached ranges, and the upgrade of pages that are volatile when the
range begins."""

import errno
import mmap
import os
import random
import signal
import threading

import pytest
from libc import (ATTACHED, IOC_ATTACH, IOC_DETACH, KEEP, KEEP_SIZE, MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC,
                  MAPPED, PUNCH_HOLE, RUN, Mapping, drop, fallocate, info, on_range, pages)
from stack import LOWER, MOUNT, PAGE, run, small_cache

DAX = MAP_SHARED_VALIDATE | MAP_SYNC
PROT_READ, PROT_WRITE = mmap.PROT_READ, mmap.PROT_WRITE


def opened(folder, count=64, name="f", settle=True):
    """A file of so many pages, each of a byte of its own."""
    fd = os.open(folder / name, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"".join(bytes([p % 251 + 1]) * PAGE for p in range(count)), 0)
    if settle:
        os.fsync(fd)
    return fd


def contents(count):
    """What opened() has written."""
    return b"".join(bytes([p % 251 + 1]) * PAGE for p in range(count))


def test_only_the_range(folder):
    """A file has DAX pages inside the range and volatile pages outside, whichever call or mapping
    touches them."""
    fd = opened(folder)
    with Mapping(fd, 8 * PAGE, DAX, offset=16 * PAGE) as dax, Mapping(fd, 64 * PAGE, MAP_SHARED) as plain:
        assert pages(fd, 16 * PAGE, 8 * PAGE) == 8, "upgraded"
        assert dax.read(0, 8 * PAGE) == contents(64)[16 * PAGE:24 * PAGE]
        for page in range(64):
            plain.write(page * PAGE, b"plain")
        os.pwrite(fd, b"written" * 1000, 40 * PAGE)
        assert info(fd, 0, 16 * PAGE)[4:6] == (0, 0) and info(fd, 24 * PAGE)[4:6] == (0, 0)
        assert info(fd, 16 * PAGE, 8 * PAGE).out_of_sync == 8
        assert dax.read(3 * PAGE, 5) == b"plain"
        assert info(fd, 16 * PAGE, PAGE).attributes == MAPPED and info(fd, 24 * PAGE, PAGE).attributes == 0
    assert info(fd).attributes == 0
    assert pages(fd) == 8, "they stay when the mapping is gone"
    os.close(fd)


def test_writes_and_plain_faults_allocate_in_pmem(folder):
    """Pages of a DAX range that aren't in memory: write(2) and a fault through a plain mapping allocate
    them in PMem."""
    fd = opened(folder)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with Mapping(fd, 16 * PAGE, DAX) as dax, Mapping(fd, 64 * PAGE, MAP_SHARED) as plain:
        assert pages(fd) == 0
        os.pwrite(fd, b"w", 5 * PAGE)
        os.pwrite(fd, b"w", 20 * PAGE)
        plain.read(6 * PAGE, 1)
        plain.write(7 * PAGE, b"s")
        plain.read(21 * PAGE, 1)
        assert pages(fd) == 3 and pages(fd, 5 * PAGE, 3 * PAGE) == 3
        assert dax.read(5 * PAGE, 2) == b"w\6" and dax.read(7 * PAGE, 2) == b"s\x08"
    os.close(fd)


def test_part_by_part(folder):
    """After munmap, mprotect and mremap of parts, the range is what is still mapped."""
    fd = opened(folder)
    dax = Mapping(fd, 32 * PAGE, DAX)

    def mapped():
        return {p for p in range(64) if info(fd, p * PAGE, PAGE).attributes & MAPPED}

    assert mapped() == set(range(32))
    dax.protect(8 * PAGE, 8 * PAGE, PROT_READ)
    dax.protect(8 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE)
    dax.protect(0, 4 * PAGE, PROT_READ)
    assert mapped() == set(range(32))
    dax.unmap(12 * PAGE, 8 * PAGE)
    assert mapped() == set(range(12)) | set(range(20, 32))
    dax.unmap(20 * PAGE, 12 * PAGE)
    dax.unmap(4 * PAGE, 8 * PAGE)
    dax.length = 4 * PAGE
    dax.remap(40 * PAGE)
    assert mapped() == set(range(40))
    dax.remap(2 * PAGE)
    assert mapped() == {0, 1}
    pid = os.fork()
    if not pid:
        signal.pause()
    dax.close()
    assert mapped() == {0, 1}, "the child has it still"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert mapped() == set()
    os.close(fd)


def test_upgrade_of_dirty_and_mapped_pages(folder):
    """Both mappings show what was stored through the plain mapping just before, and a sync of the DAX
    mapping makes it durable."""
    fd = opened(folder, settle=False)
    plain = Mapping(fd, 64 * PAGE, MAP_SHARED)
    private = Mapping(fd, 64 * PAGE, MAP_PRIVATE)
    for page in range(64):
        plain.write(page * PAGE + 100, b"before%03d" % page)
    private.write(3 * PAGE, b"mine")
    dax = Mapping(fd, 32 * PAGE, DAX)
    assert info(fd, 0, 32 * PAGE)[4:6] == (0, 32)
    for page in range(64):
        assert plain.read(page * PAGE + 100, 9) == b"before%03d" % page
        plain.write(page * PAGE + 100, b"after%03d" % page)
    for page in range(32):
        assert dax.read(page * PAGE + 100, 8) == b"after%03d" % page
    assert private.read(3 * PAGE, 4) == b"mine" and private.read(4 * PAGE + 100, 8) == b"after004"
    for mapping in (plain, private, dax):
        mapping.close()
    os.close(fd)


def test_upgrade_is_no_tear(folder):
    """One thread writes, one reads by call and one uses a mapping, while DAX mappings come, go and are
    dropped. No page goes back to older contents."""
    fd = opened(folder, 16)
    stop, wrong = threading.Event(), []
    plain = Mapping(fd, 16 * PAGE, MAP_SHARED)
    latest = [0] * 15   # what each page has had when a write returned

    def write():
        number = 1 << 30    # more than opened() has
        while not stop.is_set():
            number += 1
            page = random.randrange(15)
            os.pwrite(fd, number.to_bytes(4, "little") * (PAGE // 4), page * PAGE)
            latest[page] = number

    def read():
        seen = [0] * 15
        while not stop.is_set():
            page = random.randrange(15)
            least = max(latest[page], seen[page])
            data = os.pread(fd, PAGE, page * PAGE)
            found = {int.from_bytes(data[i:i + 4], "little") for i in range(0, PAGE, 4)}
            # ext4 below gives no promise about reads beside writes: only that nothing else shows up
            if len(found) > 3 or (len(found) == 1 and min(found) < least):
                wrong.append((page, least, found))
            if len(found) == 1:
                seen[page] = min(found)

    def count():
        """Stores to a part of a page that no other thread writes to, and reads the part back."""
        number = 0
        while not stop.is_set():
            number += 1
            plain.write(15 * PAGE + 4088, number.to_bytes(8, "little"))
            if plain.read(15 * PAGE + 4088, 8) != number.to_bytes(8, "little"):
                wrong.append(number)

    threads = [threading.Thread(target=t) for t in (write, read, count)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        with Mapping(fd, 16 * PAGE, DAX) as dax:
            dax.read(0, 16 * PAGE)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    stop.set()
    for thread in threads:
        thread.join()
    plain.close()
    os.close(fd)
    assert not wrong


def test_upgrade_without_space():
    """A page that finds no space in the cache is written back and leaves the page cache; the mapping
    still works."""
    from conftest import clean_up  # pylint: disable=import-outside-toplevel
    from stack import Stack  # pylint: disable=import-outside-toplevel
    clean_up()
    stack = Stack(cache=small_cache(8)).make()
    try:
        total = stack.value("pages_total")
        count = 2 * total
        fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
        for page in range(count):
            os.pwrite(fd, b"%08d" % page, page * PAGE)
        with Mapping(fd, count * PAGE, DAX) as dax:
            found = info(fd)
            assert found.clean + found.out_of_sync > total // 2
            assert found.volatile == 0, "nothing volatile backs the mapping"
            for page in range(0, count, 3):
                assert dax.read(page * PAGE, 8) == b"%08d" % page
            for page in range(0, count, 7):
                dax.write(page * PAGE + 8, b"stored")
            for page in range(0, count, 7):
                assert os.pread(fd, 14, page * PAGE) == b"%08dstored" % page
        os.close(fd)
        stack.destroy()
    finally:
        clean_up()


def test_attach(folder, shared):
    """Writes to an attached range go to PMem without a mapping. A sync finds them durable, and has
    nothing left to do."""
    fd = opened(folder)
    on_range(fd, IOC_ATTACH, 8 * PAGE, 8 * PAGE)
    assert info(fd, 8 * PAGE, 8 * PAGE).attributes == ATTACHED
    assert pages(fd) == 8, "those in memory moved at once"
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert pages(fd) == 0
    os.pwrite(fd, b"x" * 3 * PAGE, 7 * PAGE)
    assert pages(fd) == 2 and pages(fd, 8 * PAGE, 2 * PAGE) == 2
    os.pwrite(fd, b"y", 0)
    assert pages(fd) == 2
    on_range(fd, IOC_DETACH, 8 * PAGE, 4 * PAGE)
    os.pwrite(fd, b"z", 10 * PAGE)
    os.pwrite(fd, b"z", 12 * PAGE)
    assert pages(fd) == 3
    runs, offset = [], 0
    while offset < 64 * PAGE:
        found = info(fd, offset, 0, RUN)
        runs.append((found.offset // PAGE, found.length // PAGE, found.attributes))
        offset = found.offset + found.length
    assert runs == [(0, 12, 0), (12, 4, ATTACHED), (16, 48, 0)]
    os.close(fd)
    with open(folder / "f", "rb") as again:
        assert info(again.fileno()).attributes == 0, "gone with its opener"
    assert shared.value("pages_pinned") == 0


def test_attach_explicit(stack):
    """mode=explicit: only attached ranges absorb; an append log as a whole."""
    stack.umount()
    stack.mount("mode=explicit")
    fd = os.open(MOUNT / "log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    on_range(fd, IOC_ATTACH)
    os.write(fd, b"first")
    os.fsync(fd)
    below = stack.value("syncs_lower")
    for i in range(50):
        os.write(fd, b"%0999d\n" % i)
        os.fdatasync(fd)
    assert stack.value("syncs_lower") - below < 20, "only where the file grew by a page"
    os.close(fd)
    stack.umount()
    assert os.stat(LOWER / "log").st_size == 50005


def test_kept_attachment(stack):
    """An attachment with KEEP stays with the file until it is undone or the file is deleted. It doesn't
    keep the mount busy."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    on_range(fd, IOC_ATTACH, 0, 4 * PAGE, KEEP)
    os.close(fd)
    run("echo 3 >/proc/sys/vm/drop_caches")
    fd = os.open(MOUNT / "f", os.O_RDWR)
    assert info(fd, 0, 8 * PAGE).attributes == ATTACHED
    os.pwrite(fd, b"x" * 2 * PAGE, 0)
    assert pages(fd) == 2
    on_range(fd, IOC_DETACH, 0, 4 * PAGE)
    assert info(fd, 0, 8 * PAGE).attributes == ATTACHED, "not this opener's to undo"
    on_range(fd, IOC_DETACH, 0, PAGE, KEEP)
    assert info(fd, 0, PAGE).attributes == 0 and info(fd, PAGE, PAGE).attributes == ATTACHED
    os.unlink(MOUNT / "f")
    assert info(fd, 0, 8 * PAGE).attributes == 0
    os.close(fd)
    fd = os.open(MOUNT / "g", os.O_RDWR | os.O_CREAT)
    on_range(fd, IOC_ATTACH, 0, 0, KEEP)
    os.close(fd)


def test_hole_punched_in_a_dax_range(folder):
    """The lower file system punches the hole. The next access brings the page back as zeros."""
    fd = opened(folder)
    with Mapping(fd, 16 * PAGE, DAX) as dax:
        dax.write(0, b"gone")
        fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 0, 2 * PAGE)
        assert pages(fd) == 14
        assert dax.read(0, 2 * PAGE) == bytes(2 * PAGE)
        dax.write(PAGE, b"new")
        assert pages(fd) == 16 and os.pread(fd, 3, PAGE) == b"new"
    os.close(fd)


def test_truncated_under_a_dax_mapping(folder):
    fd = opened(folder)
    with Mapping(fd, 16 * PAGE, DAX) as dax:
        os.ftruncate(fd, 4 * PAGE + 10)
        assert pages(fd) == 5
        os.ftruncate(fd, 16 * PAGE)
        assert dax.read(4 * PAGE, 12) == bytes([5]) * 10 + b"\0\0"
        assert dax.read(5 * PAGE, PAGE) == bytes(PAGE)
    os.close(fd)


@pytest.mark.parametrize("flags, dax", [(MAP_PRIVATE, False), (MAP_SHARED, True)])
def test_flag_without_validation(folder, flags, dax):
    """MAP_SYNC means nothing for a private mapping. For MAP_SHARED, Linux passes the flag on without a
    check."""
    fd = opened(folder)
    with Mapping(fd, 8 * PAGE, flags | MAP_SYNC) as mapping:
        mapping.read(0, PAGE)
        found = info(fd, 0, 8 * PAGE)
    os.close(fd)
    assert found.attributes == (MAPPED if dax else 0) and found.clean + found.out_of_sync == (8 if dax else 0)


def test_immutable_for_a_while(folder):
    """A page that was read while the file was immutable goes to PMem with the next store."""
    fd = opened(folder, 4)
    with Mapping(fd, 4 * PAGE, DAX) as dax:
        drop(fd)
        run(f"chattr +i {folder / 'f'}")
        assert dax.read(PAGE, 1) == b"\2" and pages(fd) == 0
        run(f"chattr -i {folder / 'f'}")
        dax.write(PAGE, b"n")
        assert pages(fd, PAGE, PAGE) == 1 and os.pread(fd, 1, PAGE) == b"n"
    os.close(fd)


def test_deleted_before_the_first_touch(folder):
    """No byte of a deleted file need be durable: its pages are mapped as the lower file's."""
    fd = opened(folder, 4)
    with Mapping(fd, 4 * PAGE, DAX) as dax:
        os.unlink(folder / "f")
        drop(fd)
        dax.write(PAGE, b"n")
        assert os.pread(fd, 1, PAGE) == b"n" and dax.read(2 * PAGE, 1) == b"\3"
        dax.sync()
    os.close(fd)


def test_read_only_descriptor(folder):
    """A read-only descriptor can be mapped with MAP_SYNC and read. A writable shared mapping is refused,
    as on any file system."""
    os.close(opened(folder))
    fd = os.open(folder / "f", os.O_RDONLY)
    with Mapping(fd, 8 * PAGE, DAX, prot=PROT_READ) as dax:
        assert dax.read(PAGE, 4) == b"\2\2\2\2"
    with pytest.raises(OSError) as caught:
        Mapping(fd, 8 * PAGE, DAX)
    assert caught.value.errno == errno.EACCES
    os.close(fd)

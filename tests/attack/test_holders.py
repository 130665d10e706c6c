# SPDX-License-Identifier: GPL-2.0-only
"""A user that may only read a file holds its pages by vmsplice(2): other users notice nothing."""

import contextlib
import ctypes
import mmap
import os
import signal
import time
from pathlib import Path

import pytest
from clock import BY_THE_CLOCK
from libc import MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, PROT_READ, Mapping, drop, fallocate, pages, vmsplice
from other_user import become
from stack import LOWER, MOUNT, PAGE, drop_caches, read_below, run

USER = 1234
PUNCH, COLLAPSE, ZERO, INSERT = 3, 8, 0x10, 0x20
NR = 4
F_SETPIPE_SZ, MADV_HUGEPAGE = 1031, 14


class Holder:
    """A process of another user. Its pipes hold pages of a file; all else is closed and unmapped."""

    def __init__(self, path, nr=NR, times=1, folio=0):
        told, tell = os.pipe()
        listen, self.end = os.pipe()
        self.child = os.fork()
        if not self.child:
            try:
                for inherited in map(int, os.listdir("/proc/self/fd")):
                    if inherited > 2 and inherited not in (tell, listen):
                        with contextlib.suppress(OSError):  # the folder's own descriptor
                            os.close(inherited)
                become(USER)
                self.hold(path, nr, times, folio)
                os.write(tell, b"ready")
                os.read(listen, 1)
            except BaseException as error:  # pylint: disable=broad-except
                os.write(tell, repr(error).encode())
            os._exit(0)
        os.close(tell)
        os.close(listen)
        said = os.read(told, 1000)
        os.close(told)
        assert said == b"ready", said

    @staticmethod
    def hold(path, nr, times, folio):
        """Puts nr pages into pipes, each of them times times."""
        fd = os.open(path, os.O_RDONLY)
        with Mapping(fd, nr * PAGE, MAP_SHARED, PROT_READ) as mapping:
            for page in range(nr):
                mapping.read(page * PAGE, 1)
            while times > 0:
                _, writer = os.pipe()
                room = 16
                if times > 1:
                    room = ctypes.CDLL(None).fcntl(writer, F_SETPIPE_SZ, 256 * PAGE) // PAGE
                assert room >= nr
                for _ in range(min(times, room // nr)):
                    assert vmsplice(writer, mapping.address + folio, nr * PAGE) == nr * PAGE
                times -= room // nr
        os.close(fd)

    def let_go(self):
        """Ends the process, and its pipes with it."""
        if self.child:
            os.close(self.end)
            os.waitpid(self.child, 0)
        self.child = 0


@pytest.fixture(name="hold")
def hold_fixture():
    """Makes holders."""
    holders = []

    def make(*arguments, **options):
        holders.append(Holder(*arguments, **options))
        return holders[-1]

    yield make
    for holder in holders:
        holder.let_go()


def synced(folder, contents=b"old_", nr=NR):
    """A file with so many pages in PMem, by write and fsync."""
    path = folder / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.fsync(fd)
    os.pwrite(fd, contents * (nr * PAGE // 4), 0)
    os.fsync(fd)
    assert pages(fd) == nr
    return path, fd


def test_nothing_comes_back(stack, hold):
    """Pages that were held at unmount are below, and a later mount shows no older bytes."""
    path, fd = synced(MOUNT)
    hold(path)
    os.close(fd)
    stack.umount()
    assert read_below("f") == b"old_" * (NR * PAGE // 4)
    with open(LOWER / "f", "r+b") as file:
        file.write(b"new_" * (NR * PAGE // 4))
    stack.mount()
    assert (MOUNT / "f").read_bytes() == b"new_" * (NR * PAGE // 4)
    stack.umount()
    assert read_below("f") == b"new_" * (NR * PAGE // 4)


def test_nothing_comes_back_of_stored_pages(stack, hold):
    """The same for pages that the owner stored to in a mapping, so that the holder might be a writer."""
    path, fd = synced(MOUNT)
    with Mapping(fd, NR * PAGE) as mapping:
        for page in range(NR):
            mapping.write(page * PAGE, b"mid_")
    hold(path)
    os.close(fd)
    stack.umount()
    assert read_below("f")[:4] == b"mid_"
    with open(LOWER / "f", "r+b") as file:
        file.write(b"new_" * (NR * PAGE // 4))
    stack.mount()
    assert (MOUNT / "f").read_bytes() == b"new_" * (NR * PAGE // 4)
    assert stack.value("pages_recovered") == 0


def test_drain_beside_a_reader(shared, folder, hold):
    """A page that is only read becomes clean, and can be dropped; the reader keeps its bytes."""
    path, fd = synced(folder)
    hold(path)
    shared.drain()
    assert shared.value("pages_out_of_sync") == 0
    assert drop(fd) == (NR, 0, 0)
    os.close(fd)


@BY_THE_CLOCK
def test_drain_beside_a_possible_writer(shared, folder):
    """A drain reports held pages, and succeeds after their release. A freeze needs only the copy below."""
    _, fd = synced(folder)
    reader, writer = os.pipe()
    with Mapping(fd, NR * PAGE) as mapping:
        for page in range(2):
            mapping.write(page * PAGE, b"mid_")
        assert vmsplice(writer, mapping.address, 2 * PAGE) == 2 * PAGE
    run("dmesg -C")
    begun = time.monotonic()
    said = run(f"forebay drain {MOUNT}; echo status $?", check=False)
    assert "2 pages could not be drained" in said and said.endswith("status 4\n"), said
    assert 1 < time.monotonic() - begun < 20
    assert "not drained: 2 pages are held" in run("dmesg")
    assert shared.value("pages_busy") == 2
    assert (LOWER / folder.name / "f").stat().st_size == NR * PAGE
    run(f"fsfreeze -f {MOUNT} && fsfreeze -u {MOUNT}")
    assert read_below(f"{folder.name}/f")[:4] == b"mid_"
    os.close(reader)
    os.close(writer)
    shared.drain()
    assert shared.value("pages_busy") == 0 and shared.value("pages_out_of_sync") == 0
    os.close(fd)


@pytest.mark.parametrize("stored", [False, True])
def test_owners_calls(folder, hold, stored):
    """The owner's holes, zeros, copies and collapses work beside a holder, and the bytes are right."""
    path, fd = synced(folder, nr=8)
    whole = bytearray(b"old_" * (8 * PAGE // 4))

    def again():
        for _ in range(2):      # the first sync may go below
            os.pwrite(fd, whole, 0)
            os.fsync(fd)
        assert pages(fd) == len(whole) // PAGE
        with Mapping(fd, len(whole)) as mapping:
            if stored:
                for at in range(0, len(whole), PAGE):
                    mapping.write(at, bytes(whole[at:at + 4]))
            hold(path, nr=len(whole) // PAGE)

    again()
    fallocate(fd, PUNCH, PAGE // 2, PAGE)
    whole[PAGE // 2:PAGE // 2 + PAGE] = bytes(PAGE)
    assert os.pread(fd, 9 * PAGE, 0) == whole
    again()
    fallocate(fd, ZERO, 2 * PAGE, PAGE)
    whole[2 * PAGE:3 * PAGE] = bytes(PAGE)
    assert os.pread(fd, 9 * PAGE, 0) == whole
    again()
    source = os.open(folder / "source", os.O_RDWR | os.O_CREAT)
    os.pwrite(source, b"copy" * (PAGE // 4), 0)
    assert os.copy_file_range(source, fd, PAGE, 0, 3 * PAGE) == PAGE
    whole[3 * PAGE:4 * PAGE] = b"copy" * (PAGE // 4)
    assert os.pread(fd, 9 * PAGE, 0) == whole
    again()
    fallocate(fd, COLLAPSE, PAGE, PAGE)
    del whole[PAGE:2 * PAGE]
    assert os.pread(fd, 9 * PAGE, 0) == whole
    again()
    fallocate(fd, INSERT, PAGE, PAGE)
    whole[PAGE:PAGE] = bytes(PAGE)
    assert os.pread(fd, 9 * PAGE, 0) == whole
    again()
    os.ftruncate(fd, 3 * PAGE + 100)
    del whole[3 * PAGE + 100:]
    assert os.pread(fd, 9 * PAGE, 0) == whole
    run(f"chattr +i {path} && chattr -i {path}")
    os.fsync(fd)
    assert os.pread(fd, 9 * PAGE, 0) == whole
    os.close(source)
    os.close(fd)


def volatile(folder):
    """A file whose pages are in the lower page cache."""
    path = folder / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, b"old_" * (NR * PAGE // 4), 0)
    os.fsync(fd)
    assert pages(fd) == 0
    return path, fd


def sync_access(path, store):
    """Seconds that another process took to touch a MAP_SYNC mapping; None if a signal ended it."""
    begun = time.monotonic()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        fd = os.open(path, os.O_RDWR)
        mapping = Mapping(fd, NR * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC)
        if store:
            mapping.write(0, b"new_")
        os._exit(0 if mapping.read(0, 4) == (b"new_" if store else b"old_") else 1)
    return time.monotonic() - begun if os.waitpid(child, 0)[1] == 0 else None


@BY_THE_CLOCK
@pytest.mark.parametrize("store", [False, True])
def test_many_references_of_a_reader(folder, hold, store):
    """2,048 references look like a DMA pin. They came by a read-only mapping, so the page moves."""
    path, fd = volatile(folder)
    hold(path, nr=1, times=2048)
    took = sync_access(path, store)
    assert took is not None and took < 4, took
    assert os.pread(fd, 4, 0) == (b"new_" if store else b"old_")
    assert pages(fd) >= 1
    os.close(fd)


@BY_THE_CLOCK
def test_many_references_after_a_store_elsewhere(folder, hold):
    """After a store to another page of the file, a holder of this page still counts as a reader."""
    path, fd = volatile(folder)
    with Mapping(fd, NR * PAGE) as mapping:
        mapping.write(2 * PAGE, b"mid_")
    hold(path, nr=1, times=2048)
    assert (sync_access(path, True) or 99) < 4
    assert os.pread(fd, 4, 0) == b"new_"
    os.close(fd)


@BY_THE_CLOCK
def test_reading_beside_a_possible_writer(folder, hold):
    """A page that its owner stored to and a stranger holds can be read in a MAP_SYNC mapping."""
    path, fd = volatile(folder)
    mapping = Mapping(fd, NR * PAGE)
    mapping.write(0, b"old_")
    holder = hold(path, nr=1, times=2048)
    took = sync_access(path, False)
    assert took is not None and took < 5, took
    holder.let_go()
    assert (sync_access(path, True) or 99) < 6
    assert os.pread(fd, 4, 0) == b"new_"
    mapping.close()
    os.close(fd)


def test_direct_read_into_a_volatile_mapping_still_counts(folder):
    """A volatile page that a disk reads into stays where it is until the read has ended."""
    path, fd = volatile(folder)
    run("dmsetup remove --retry slow 2>/dev/null; modprobe -a dm-delay loop; truncate -s 1M /tmp/slow; "
        "dd if=/dev/zero bs=4096 count=1 status=none | tr '\\0' n > /tmp/slow; truncate -s 1M /tmp/slow; "
        "dmsetup create slow --table \"0 2048 delay $(losetup -f --show /tmp/slow) 0 2000\" && dmsetup mknodes")
    source = os.open("/dev/mapper/slow", os.O_RDONLY | os.O_DIRECT)
    child = os.fork()
    if not child:
        with mmap.mmap(fd, NR * PAGE) as mapping:
            mapping[0] = 0x5f
            os._exit(0 if os.preadv(source, [memoryview(mapping)[:PAGE]], 0) == PAGE else 1)
    time.sleep(0.5)
    assert (sync_access(path, True) or 99) < 8
    assert os.waitpid(child, 0)[1] == 0
    assert os.pread(fd, PAGE, 0) in (b"new_" + b"n" * (PAGE - 4), b"n" * PAGE)
    assert os.pread(fd, 8, 8) == b"n" * 8
    os.close(source)
    os.close(fd)
    run("dmsetup remove --retry slow; losetup -D")


@pytest.mark.parametrize("shared", ["xfs"], indirect=True)
def test_huge_page_stored_to(folder):
    """One fault makes 2 MiB writable: a sync must make all of that durable, not one page. Newer kernels map one page at a
    time (compat/dax.h)."""
    size = 2 << 20
    fd = os.open(folder / "huge", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"old_" * (size // 4), 0)
    os.fsync(fd)
    drop_caches()       # the fault reads them as one folio, as it is told to
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    room = libc.mmap(None, 2 * size, 0, 0x22, -1, 0)
    address = libc.mmap(-(-room // size) * size, size, 3, MAP_SHARED | 0x10, fd, 0)
    assert libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), MADV_HUGEPAGE) == 0
    ctypes.memmove(address, b"new_", 4)
    ctypes.memmove(address + 5 * PAGE, b"new_", 4)
    huge = Path("/proc/self/smaps").read_text(encoding="ascii").count("FilePmdMapped:      2048")
    os.fsync(fd)
    in_pmem = pages(fd)
    print(huge, "huge mappings", in_pmem)
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.munmap(room, 2 * size)
    assert os.pread(fd, 4, 0) == os.pread(fd, 4, 5 * PAGE) == b"new_"
    os.close(fd)
    assert huge == (1 if os.uname().release.startswith("6.12") else 0)
    assert in_pmem in (0, size // PAGE if huge else 2)

# SPDX-License-Identifier: GPL-2.0-only
"""No huge entry hides a page in PMem. Newer kernels make one of a file's clean pages, at a program's wish
(MADV_COLLAPSE) or by themselves (khugepaged), and free the page tables of all of the file's mappings for that."""

import ctypes
import os

import pytest
from libc import MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, PROT_READ, PROT_WRITE, Mapping, checked_address, pages
from libc import _libc  # pylint: disable=protected-access
from stack import MOUNT, PAGE, drop_caches, read_below, run

MAP_FIXED, MAP_ANONYMOUS, MAP_PRIVATE = 0x10, 0x20, 2
MADV_COLLAPSE = 25
HUGE = 2 << 20
IN_PMEM = (1, 7, 100, 511)


class AlignedMapping(Mapping):
    """A mapping of the file's first two mebibytes at an address that a huge entry may have."""

    def __init__(self, fd, flags, prot=PROT_READ | PROT_WRITE):  # pylint: disable=super-init-not-called
        space = checked_address(_libc.mmap(None, 2 * HUGE, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        self.length = HUGE
        self.address = checked_address(_libc.mmap((space + HUGE - 1) & -HUGE, HUGE, prot, flags | MAP_FIXED, fd, 0))

    def collapse(self):
        """Has the kernel make a huge page of it; the errno, or 0."""
        if _libc.madvise(ctypes.c_void_p(self.address), ctypes.c_size_t(HUGE), MADV_COLLAPSE):
            return ctypes.get_errno()
        return 0


def partly_in_pmem(stack):
    """A file of a huge page's length that is durable below, but for some pages that are in PMem; and its bytes."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    data = bytearray(b"".join(b"%04d" % page * (PAGE // 4) for page in range(HUGE // PAGE)))
    os.pwrite(fd, data, 0)
    os.fsync(fd)
    stack.drain()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.pread(fd, HUGE, 0)
    for page in IN_PMEM:
        data[page * PAGE:(page + 1) * PAGE] = b"PMem" * (PAGE // 4)
        os.pwrite(fd, b"PMem" * (PAGE // 4), page * PAGE)
    os.fdatasync(fd)
    assert pages(fd) == len(IN_PMEM)
    return fd, data


def wrong(read, data):
    """Numbers of the pages that differ. pytest would compare the bytes for minutes."""
    return [page for page in range(HUGE // PAGE) if read[page * PAGE:(page + 1) * PAGE] != data[page * PAGE:(page + 1) * PAGE]]


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}, {"fs": "btrfs"}], indirect=True)
@pytest.mark.parametrize("prot", [PROT_READ, PROT_READ | PROT_WRITE], ids=["read", "write"])
@pytest.mark.parametrize("touched", [False, True])
def test_collapse(stack, prot, touched):
    """Whether the kernel makes a huge page or refuses, mappings have the pages in PMem, and these stay usable."""
    fd, data = partly_in_pmem(stack)
    other = AlignedMapping(fd, MAP_SHARED_VALIDATE | MAP_SYNC if touched else MAP_SHARED)    # MAP_SYNC moves all pages
    mapping = AlignedMapping(fd, MAP_SHARED, prot)
    for page in range(HUGE // PAGE):
        if touched or page not in IN_PMEM:
            mapping.read(page * PAGE, 1)
    for page in IN_PMEM:
        other.read(page * PAGE, 1)
    if stack.fs == "ext4" and not touched:
        run(f"chattr +j {MOUNT}/f && chattr -j {MOUNT}/f")      # ext4 then decides anew how large pages may be
        os.pread(fd, HUGE, 0)
        os.fsync(fd)
    print("collapse:", mapping.collapse())
    assert not wrong(mapping.read(0, HUGE), data)
    for page in IN_PMEM:
        other.write(page * PAGE + 8, b"stored")
        data[page * PAGE + 8:page * PAGE + 14] = b"stored"
    if prot & PROT_WRITE:
        mapping.write(3 * PAGE, b"volatile")
        data[3 * PAGE:3 * PAGE + 8] = b"volatile"
    assert not wrong(mapping.read(0, HUGE), data) and not wrong(os.pread(fd, HUGE, 0), data)
    other.close()
    mapping.close()
    os.fsync(fd)
    stack.drain()
    os.close(fd)
    stack.umount()
    drop_caches()
    assert not wrong(read_below("f"), data)

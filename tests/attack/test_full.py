# SPDX-License-Identifier: GPL-2.0-only
"""Pages in PMem are to be written back, that needs space (copy on write, shared blocks), and there is none.
What was acknowledged stays in PMem and can be written to, the error is told, no task spins, and room for it ends that."""

import errno
import os
import time

import pytest
from bench.cost import busy_seconds
from clock import BY_THE_CLOCK
from conftest import clean_up
from libc import error_of
from stack import LOWER, MOUNT, PAGE, SSD, Stack, drop_caches, run

MIB = 1 << 20
NUMBER = 600        # pages
SIZES = {"btrfs": 256, "f2fs": 128, "xfs": 310, "ext4": 96}


@pytest.fixture(name="full")
def full_fixture(request):
    """A small file system, and what the test is told of it."""
    clean_up()
    fs, shared, quota = request.param
    run(f"dmsetup create ssd --table '0 {SIZES[fs] * 2048} linear {SSD} 0'; dmsetup mknodes")
    stack = Stack(fs=fs, mib=SIZES[fs], device="/dev/mapper/ssd", lower_options="prjquota" if quota else "").make()
    (MOUNT / "d").mkdir()
    if quota:
        limit_project("20m")
    yield stack, shared, quota
    os.chdir("/")
    clean_up()


def limit_project(size):
    """The folder's project may have so much space; 0: no limit."""
    run(f"xfs_quota -x -c 'project -s -p {LOWER}/d 42' -c 'limit -p bhard={size} 42' {LOWER}")


def write_synced(fd, byte):
    """Overwrites and syncs all pages: they are in PMem afterwards."""
    for first in range(0, NUMBER, 16):
        for page in range(first, min(first + 16, NUMBER)):
            os.pwrite(fd, byte * PAGE, page * PAGE)
        os.fdatasync(fd)


def fill():
    """Files that leave no space; their names."""
    names = []
    for number in range(6):
        name = MOUNT / f"d/filler{number}"
        if error_of(lambda name=name: name.open("xb").close()):
            break
        names.append(name)
        fd, got = os.open(name, os.O_WRONLY), 0
        for size in (4 * MIB, MIB // 4, PAGE):
            while not (error := error_of(os.write, fd, b"f" * size)):
                got += size
            assert error in (errno.ENOSPC, errno.EDQUOT)
        error_of(os.fsync, fd)
        os.close(fd)
        if got < 64 * 1024:
            break
    return names


CASES = {"btrfs-clone": ("btrfs", True, False), "f2fs": ("f2fs", False, False), "ext4": ("ext4", False, False),
         "xfs-clone-quota": ("xfs", True, True)}


@BY_THE_CLOCK
@pytest.mark.parametrize("full", CASES.values(), ids=CASES, indirect=True)
def test_no_space_to_write_back(full):
    """The file's pages are in PMem, then everything is full; then there is room again."""
    stack, shared, quota = full
    path = MOUNT / "d/f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"o" * NUMBER * PAGE, 0)
    os.fsync(fd)
    stack.drain()
    os.sync()
    if shared:
        run(f"cp --reflink=always {path} {MOUNT}/d/clone && sync")
    write_synced(fd, b"n")
    assert stack.value("pages_out_of_sync") >= NUMBER
    fillers = fill()
    told = stack.drain(False)
    left = stack.value("pages_out_of_sync")
    print(f"{left} pages left; fsync: {error_of(os.fsync, fd)}; {told}")
    assert ("No space" in told or "quota" in told) if left else not stack.value("last_error")
    before = busy_seconds()
    time.sleep(1)
    assert busy_seconds() - before < 0.6
    write_synced(fd, b"m")      # in place, in PMem
    assert path.read_bytes().count(b"m") == NUMBER * PAGE
    for name in fillers:
        name.unlink()
    if quota:
        limit_project("0")
    os.sync()
    error_of(os.fsync, fd)      # may tell of the old error
    stack.drain()
    assert not stack.value("pages_out_of_sync") and not stack.value("last_error")
    os.fsync(fd)
    os.close(fd)
    stack.umount()
    drop_caches()
    assert (LOWER / "d/f").read_bytes().count(b"m") == NUMBER * PAGE
    stack.fsck()
    stack.destroy()

# SPDX-License-Identifier: GPL-2.0-only
"""Cache lines that the PMem device has lost. A test can add to the kernel's list of bad blocks. The list
never shrinks here, so the cache lies at the end of the device, where no other test has one."""

import errno
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from libc import IOC_ATTACH, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, error_of, info, on_range
from stack import LOWER, MOUNT, PAGE, PMEM, SSD, Stack, run

START, SIZE = 22, 8             # of the cache, in MiB
MIB = 128                       # of the lower file system


def dm(name, command, line):
    """dmsetup create, or another table for a device that is there."""
    if command == "create":
        run(f"dmsetup create {name} --table '{line}'; dmsetup mknodes")
    else:
        run(f"dmsetup suspend --noflush --nolockfs {name}; dmsetup load {name} --table '{line}'; dmsetup resume {name}")


@pytest.fixture(name="stack")
def stack_fixture():
    """A cache at the end of the PMem device; the lower file system's device can be made to fail."""
    clean_up()
    dm("bad", "create", f"0 {SIZE * 2048} linear {PMEM} {START * 2048}")
    dm("ssd", "create", f"0 {MIB * 2048} linear {SSD} 0")
    yield Stack(mib=MIB, cache="/dev/mapper/bad", device="/dev/mapper/ssd").make()
    os.chdir("/")
    clean_up()


def old_and_new(name, pages):
    """A file that the lower file system has with older pages."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"old".ljust(PAGE) * pages, 0)
    os.fsync(fd)
    for page in range(pages):
        os.pwrite(fd, new(name, page), page * PAGE)
    os.fdatasync(fd)
    assert info(fd).out_of_sync == pages
    os.close(fd)


def new(name, page):
    """The newer contents of a page, in PMem."""
    return (f"new {name} {page}".encode()).ljust(PAGE)


def leave_in_pmem(stack):
    """Unmounts while the storage fails every request; then mounts the lower file system again."""
    dm("ssd", "load", f"0 {MIB * 2048} error")
    stack.umount()
    run(f"umount {LOWER}")
    dm("ssd", "load", f"0 {MIB * 2048} linear {SSD} 0")
    run("e2fsck -fy /dev/mapper/ssd", check=False)
    stack.mount_lower()


def spoil(device, content):
    """Makes bad blocks in the cache's page with this content, and in the device's last page."""
    with open(device, "rb") as file:
        data = file.read()
    for at in (data.index(content), len(data) - PAGE):
        assert at % PAGE == 0
        sector = START * 2048 + at // 512 + 3
        Path(f"/sys/block/{os.path.basename(PMEM)}/badblocks").write_text(f"{sector} 1", encoding="ascii")


def killed_by(action):
    """The signal that ends a child."""
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        action()
        os._exit(0)
    return os.WTERMSIG(os.waitpid(pid, 0)[1])


def await_value(stack, name, value):
    """The worker places pages after the mount call has returned."""
    deadline = time.monotonic() + 60
    while stack.value(name) != value and time.monotonic() < deadline:
        time.sleep(0.05)
    assert stack.value(name) == value


def test_bad_blocks(stack):
    """A mount comes up, keeps what can be read, and says what is lost. Bad pages are never used."""
    total = stack.value("pages_total")
    old_and_new("f", 4)
    old_and_new("g", 2)
    leave_in_pmem(stack)
    spoil(stack.cache, new("f", 1))
    run("dmesg -C")
    stack.mount()
    await_value(stack, "pages_lost", 1)
    assert "2 pages are bad" in run("dmesg") and "lost 4096 bytes at 4096" in run("dmesg")
    await_value(stack, "pages_out_of_sync", 6)
    assert stack.value("pages_free") == total - 7

    fd = os.open(MOUNT / "f", os.O_RDWR)
    synchronous = os.open(MOUNT / "f", os.O_RDWR | os.O_DSYNC)
    mapped = Mapping(fd, PAGE)
    assert [os.pread(fd, PAGE, page * PAGE) for page in (0, 2, 3)] == [new("f", page) for page in (0, 2, 3)]
    assert error_of(os.pread, fd, PAGE, PAGE) == error_of(os.pwrite, fd, b"x", PAGE) == errno.EIO
    assert os.pread(fd, 2 * PAGE, 0) == new("f", 0)
    for flags in (MAP_SHARED, MAP_SHARED_VALIDATE | MAP_SYNC):
        with Mapping(fd, 4 * PAGE, flags) as mapping:
            assert mapping.read(0, PAGE) == new("f", 0)
            assert killed_by(lambda: mapping.read(PAGE, 1)) == signal.SIGBUS     # pylint: disable=cell-var-from-loop
            assert killed_by(lambda: mapping.write(PAGE, b"x")) == signal.SIGBUS     # pylint: disable=cell-var-from-loop
    assert info(fd, PAGE, PAGE).out_of_sync == 1
    assert "lost" in run(f"forebay status {MOUNT}/f") and "lost" not in run(f"forebay status {MOUNT}/g")

    assert subprocess.run(["forebay", "drain", MOUNT], check=False, capture_output=True).returncode
    assert stack.value("pages_out_of_sync") == 1 and (MOUNT / "g").read_bytes() == new("g", 0) + new("g", 1)
    assert error_of(os.fsync, fd) == errno.EIO and error_of(os.fsync, fd) == 0
    assert error_of(os.pwrite, synchronous, b"n", 0) == errno.EIO and os.pwrite(synchronous, b"n", 0) == 1
    assert error_of(mapped.sync) == errno.EIO and error_of(mapped.sync) == 0
    mapped.close()
    os.close(synchronous)

    big = os.open(MOUNT / "big", os.O_RDWR | os.O_CREAT)        # all free pages are used
    on_range(big, IOC_ATTACH)
    os.ftruncate(big, total * PAGE)
    for page in range(0, total, 32):
        os.pwrite(big, b"".join(new("big", p) for p in range(page, min(page + 32, total))), page * PAGE)
        os.fsync(big)
    assert all(os.pread(big, PAGE, page * PAGE) == new("big", page) for page in range(total))
    os.close(big)

    os.ftruncate(fd, PAGE)
    os.fsync(fd)
    assert stack.value("pages_lost") == 0
    os.ftruncate(fd, 2 * PAGE)
    assert os.pread(fd, 2 * PAGE, 0) == new("f", 0) + bytes(PAGE)
    os.close(fd)
    stack.drain()
    stack.umount()
    stack.mount()
    assert stack.value("pages_lost") == 0 and stack.value("pages_free") == total - 2
    assert (LOWER / "f").read_bytes() == new("f", 0) + bytes(PAGE)
    stack.umount()
    stack.fsck()

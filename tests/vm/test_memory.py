# SPDX-License-Identifier: GPL-2.0-only
"""What other tasks and the kernel do with mappings, besides faults of the task itself: debuggers, userfaultfd, soft-dirty bits."""

import fcntl
import json
import os
import signal
import struct
import time

import pytest
from conftest import clean_up
from libc import MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, PROT_READ, Mapping, syscall
from stack import LOWER, MKFS, MOUNT, PAGE, SSD, close_files, create_emulated, run

USERFAULTFD, USER_MODE_ONLY = 323, 1
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_WRITEPROTECT = 0xC018AA3F, 0xC020AA00, 0xC018AA06
WP_UNPOPULATED, WP_ASYNC = 1 << 13, 1 << 15
MODE_WP, PROTECT = 2, 1
PATIENCE = 60       # s
BREAKPOINT = 0xCC


def in_pmem(path, pages):
    """A file with a number at the begin of each page, all pages in PMem."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(2):
        for page in range(pages):
            os.pwrite(fd, b"%06d" % page + b"x" * (PAGE - 6), page * PAGE)
        os.fsync(fd)
    return fd


@pytest.fixture(name="emulated")
def emulated_fixture():
    """forebay over ext4, with a cache of ordinary memory."""
    clean_up()
    run("modprobe forebay-emu; modprobe forebay")
    device = create_emulated("--size 16M")
    for folder in (LOWER, MOUNT):
        folder.mkdir(parents=True, exist_ok=True)
    run(MKFS["ext4"].format(device=SSD, mib=256))
    run(f"mount {SSD} {LOWER} && forebay format {device} && mount -t forebay -o cache={device},allow_volatile_cache {LOWER} {MOUNT}")
    yield
    close_files("/mnt/")
    clean_up()
    run(f"forebay emu remove {device}")


def breakpoint_in_child(path, locked):
    """A debugger writes a byte into another process's program text. That alone is changed, in a page of the process's own."""
    pages, at = 4, PAGE + 100
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    expected = bytearray(path.read_bytes())
    pid = os.fork()
    if not pid:
        try:
            text = Mapping(os.open(path, os.O_RDONLY), pages * PAGE, MAP_PRIVATE, PROT_READ)
            if locked:
                text.lock()
            assert text.read(0, pages * PAGE) == expected
            os.write(to_parent, struct.pack("Q", text.address))
            os.read(from_parent, 1)
            expected[at] = BREAKPOINT
            wrong = [page for page in range(pages) if text.read(page * PAGE, PAGE) != expected[page * PAGE:(page + 1) * PAGE]]
            os.write(to_parent, json.dumps(wrong).encode())
        finally:
            os._exit(0)
    os.close(to_parent)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(struct.unpack("Q", os.read(from_child, 8))[0] + at)
        memory.write(bytes([BREAKPOINT]))
    os.write(to_child, b"x")
    wrong = json.loads(os.read(from_child, 1000))
    os.waitpid(pid, 0)
    for fd in (from_child, from_parent, to_child):
        os.close(fd)
    assert not wrong, f"pages {wrong} have other bytes"
    assert path.read_bytes() == expected


@pytest.mark.parametrize("locked", [False, True], ids=["plain", "locked"])
def test_breakpoint(folder, locked):
    os.close(in_pmem(folder / "f", 4))
    breakpoint_in_child(folder / "f", locked)


def test_breakpoint_emulated(emulated):
    del emulated
    os.close(in_pmem(MOUNT / "f", 4))
    breakpoint_in_child(MOUNT / "f", False)
    with Mapping(os.open(MOUNT / "f", os.O_RDONLY), 4 * PAGE, MAP_PRIVATE, PROT_READ) as text:
        assert text.read(0, 6) == b"000000"
        run(f"forebay drop {MOUNT}/f")
        assert text.read(PAGE, 6) == b"000001"


def store_watched(fd, pages, flags, there):
    """Has userfaultfd watch stores to a mapping, as checkpointing does, and stores."""
    watcher = syscall(USERFAULTFD, os.O_CLOEXEC | USER_MODE_ONLY)
    fcntl.ioctl(watcher, UFFDIO_API, bytearray(struct.pack("QQQ", 0xAA, WP_ASYNC | WP_UNPOPULATED, 0)))
    mapping = Mapping(fd, pages * PAGE, flags)
    if there:
        mapping.read(0, pages * PAGE)
    fcntl.ioctl(watcher, UFFDIO_REGISTER, bytearray(struct.pack("QQQQ", mapping.address, mapping.length, MODE_WP, 0)))
    for where, what in ((8, b"stored"), (16, b"again")):
        fcntl.ioctl(watcher, UFFDIO_WRITEPROTECT, bytearray(struct.pack("QQQ", mapping.address, mapping.length, PROTECT)))
        for page in range(pages):
            assert mapping.read(page * PAGE, 6) == b"%06d" % page
            mapping.write(page * PAGE + where, what)
        if flags != MAP_PRIVATE:
            mapping.sync()


@pytest.mark.parametrize("there", [True, False], ids=["there", "absent"])
@pytest.mark.parametrize("flags", [MAP_SHARED, MAP_SHARED_VALIDATE | MAP_SYNC, MAP_PRIVATE], ids=["shared", "sync", "private"])
@pytest.mark.parametrize("dropped", [False, True], ids=["in_pmem", "below"])
def test_userfaultfd(folder, dropped, flags, there):
    """A store to a page that userfaultfd protects ends. The kernel keeps a marker where such a page isn't mapped."""
    fd = in_pmem(folder / "f", 8)
    if dropped:
        run(f"forebay drop {folder}/f")
    pid = os.fork()
    if not pid:
        status = 1
        try:
            store_watched(fd, 8, flags, there)
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + PATIENCE
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("the store doesn't end")
        time.sleep(0.05)
    assert os.waitpid(pid, 0)[1] == 0
    for page in range(8 if flags != MAP_PRIVATE else 0):
        assert os.pread(fd, 21, page * PAGE) == b"%06dxxstoredxxagain" % page
    os.close(fd)


def soft_dirty(mapping):
    """Which pages of a mapping were stored to since the bits were cleared, as the kernel says."""
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        pagemap.seek(mapping.address // PAGE * 8)
        words = struct.unpack(f"{mapping.length // PAGE}Q", pagemap.read(mapping.length // PAGE * 8))
    return [page for page, word in enumerate(words) if word >> 55 & 1]


@pytest.mark.parametrize("flags", [MAP_SHARED, MAP_SHARED_VALIDATE | MAP_SYNC], ids=["shared", "sync"])
def test_soft_dirty(folder, flags):
    fd = in_pmem(folder / "f", 8)
    with Mapping(fd, 8 * PAGE, flags) as mapping:
        for page in range(4):
            mapping.write(page * PAGE, b"a")
        os.fsync(fd)
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("4")
        assert not soft_dirty(mapping)
        for page in (1, 2, 5, 6):
            mapping.write(page * PAGE, b"b")
        assert soft_dirty(mapping) == [1, 2, 5, 6]
    os.close(fd)

# SPDX-License-Identifier: GPL-2.0-only
"""The table of forebay(3): every limit, flag and misuse of libforebay, through the library itself.

Each function below is named by rows of the table; test_table() looks that each row has one.
"""

import ctypes
import errno
import fcntl
import os
import pwd
import re
import signal
import struct
import time
from pathlib import Path

import pytest
from conftest import clean_up
from libc import (IOC_PIN, KEEP, MAP_PRIVATE, MAP_SHARED_VALIDATE, MAP_SYNC, PINNED, RUN, Mapping, info, linkat)
from stack import LOWER, MOUNT, PAGE, SSD, Stack, run, small_cache
from test_errors import SECTORS, synced_pages, table

ROOT = Path(__file__).resolve().parents[2]
NOBODY = pwd.getpwnam("nobody").pw_uid
_lib = ctypes.CDLL(str(ROOT / "build/lib/libforebay.so"), use_errno=True)
_lib.forebay_mmap.restype = ctypes.c_void_p
_lib.forebay_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for _name in ("pin", "unpin", "attach", "detach"):
    getattr(_lib, "forebay_" + _name).argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_uint]
_lib.forebay_drop.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_void_p]
_lib.forebay_range_info.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_uint, ctypes.c_void_p]


def call(name, fd, offset=0, length=0, flags=0):
    """The errno of a library call, 0 if it succeeds; for info, the struct's numbers besides."""
    function = getattr(_lib, "forebay_" + name)
    ctypes.set_errno(0)
    memory = ctypes.create_string_buffer(128)
    if name == "drop":
        result = function(fd, offset, length, memory)
        return ctypes.get_errno() if result else struct.unpack_from("IIQQQQQ", memory.raw)[4:]
    if name == "range_info":
        result = function(fd, offset, length, flags, memory)
    else:
        result = function(fd, offset, length, flags)
    assert result in (0, -1)
    return ctypes.get_errno() if result else 0


def mapped(fd, length, flags=0, protection=3):
    """The errno of forebay_mmap(); unmaps."""
    ctypes.set_errno(0)
    address = _lib.forebay_mmap(None, length, protection, flags, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        return ctypes.get_errno()
    ctypes.CDLL(None).munmap(ctypes.c_void_p(address), ctypes.c_size_t(length))
    return 0


def as_nobody(action):
    """In a child without capabilities; returns the action's value."""
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os._exit(action())
        finally:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


RANGED = ("pin", "unpin", "attach", "detach", "drop", "range_info")


@pytest.fixture(name="fd")
def fd_fixture(folder):
    """A settled file of 16 pages, opened to read and write."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT, 0o666)
    os.pwrite(fd, b"x" * 16 * PAGE, 0)
    os.fsync(fd)
    yield fd
    os.close(fd)


def test_table():
    """Every row of the table names a test here, and every test is named."""
    page = (ROOT / "docs/man/forebay.3").read_text(encoding="utf-8")
    rows = re.findall(r"^\.It .* Ta (\w+)$", page, re.M)
    assert len(rows) > 30
    tests = {name[5:] for name in globals() if name.startswith("test_")} - {"table", "works"}
    assert set(rows) == tests


def test_works(fd):
    """The calls do what they say; the details are in the other files."""
    assert mapped(fd, 16 * PAGE) == 0 and mapped(fd, 16 * PAGE, MAP_SHARED_VALIDATE) == 0
    assert call("attach", fd, 0, PAGE) == 0
    assert call("pin", fd, 0, 4 * PAGE) == 0 and info(fd).pinned == 4
    assert call("unpin", fd, 0, PAGE) == 0 and info(fd).pinned == 3
    assert call("range_info", fd, 0, 0, RUN) == 0
    assert call("detach", fd) == 0 and info(fd, 0, PAGE).attributes == 0


def test_elsewhere(fd):
    """On the lower file system, a pipe, a device."""
    del fd
    other = os.open(LOWER / "other", os.O_RDWR | os.O_CREAT)
    os.ftruncate(other, PAGE)
    null = os.open("/dev/null", os.O_RDWR)
    for file in (other, null, os.pipe()[0]):
        for name in RANGED:
            assert call(name, file) == errno.ENOTTY
    assert mapped(other, PAGE) == errno.EOPNOTSUPP
    os.close(other)
    os.close(null)


def test_private(fd):
    assert mapped(fd, PAGE, MAP_PRIVATE) == errno.EINVAL
    assert mapped(-1, PAGE, 0x20) == errno.EINVAL
    with Mapping(fd, PAGE, MAP_PRIVATE | MAP_SYNC) as mapping:
        mapping.write(0, b"x")
        assert info(fd).attributes == 0


def test_descriptors(fd, folder):
    reading = os.open(folder / "f", os.O_RDONLY)
    path = os.open(folder / "f", os.O_PATH)
    directory = os.open(folder, os.O_RDONLY)
    assert mapped(reading, PAGE) == errno.EACCES and mapped(reading, PAGE, 0, 1) == 0
    for name in RANGED:
        assert call(name, 999) == errno.EBADF
        assert call(name, path) == errno.EBADF
        assert call(name, directory) == errno.EINVAL
    assert call("attach", reading) == errno.EBADF == call("detach", reading)
    assert call("pin", reading) == 0 == call("range_info", reading) == call("unpin", reading)
    assert call("drop", reading) == (16, 0, 0)
    for file in (reading, path, directory):
        os.close(file)
    del fd


def test_flags(fd):
    for name in ("pin", "unpin", "attach", "detach", "range_info"):
        for flags in (2, 3, 0x80000000):
            assert call(name, fd, 0, 0, flags) == errno.EINVAL
    with pytest.raises(OSError) as caught:
        fcntl.ioctl(fd, 0xC030FB08, struct.pack("IIQQQQQ", 48, 1, 0, 0, 0, 0, 0))
    assert caught.value.errno == errno.EINVAL
    for name in ("pin", "unpin", "attach", "detach"):
        assert as_nobody(lambda name=name: call(name, fd, 0, PAGE, KEEP)) == errno.EPERM
    assert call("pin", fd, 0, PAGE, KEEP) == 0 == call("unpin", fd)
    assert info(fd, 0, PAGE).attributes == PINNED
    assert call("unpin", fd, 0, 0, KEEP) == 0 and info(fd).attributes == 0


def test_immutable(fd, folder):
    run(f"chattr +i {folder / 'f'}")
    try:
        assert call("pin", fd, 0, PAGE) == errno.EPERM
        assert info(fd).pinned == 0
    finally:
        run(f"chattr -i {folder / 'f'}")
    assert call("pin", fd, 0, PAGE) == 0


def test_deleted(fd, folder):
    os.unlink(folder / "f")
    for name in ("attach", "pin"):
        assert call(name, fd) == errno.EOPNOTSUPP and info(fd).attributes == 0
        assert call(name, fd, 0, PAGE, KEEP) == errno.ENOENT and info(fd).attributes == 0
    assert mapped(fd, PAGE) == errno.EOPNOTSUPP
    nameless = os.open(folder, os.O_RDWR | os.O_TMPFILE)
    os.pwrite(nameless, b"x" * PAGE, 0)
    assert mapped(nameless, PAGE) == errno.EOPNOTSUPP
    linkat(f"/proc/self/fd/{nameless}", folder / "named")
    assert mapped(nameless, PAGE) == 0
    os.close(nameless)


def test_ranges(fd, folder):
    most = (1 << 63) - 1
    for name in RANGED:
        assert call(name, fd, -1, PAGE) == errno.EINVAL
        assert call(name, fd, 0, -PAGE) == errno.EINVAL
        assert call(name, fd, most, PAGE) == errno.EINVAL
    assert call("pin", fd, 15 * PAGE, PAGE + 1) == errno.EINVAL
    assert call("pin", fd, 16 * PAGE) == errno.EINVAL
    empty = os.open(folder / "empty", os.O_RDWR | os.O_CREAT)
    assert call("pin", empty) == errno.EINVAL
    os.close(empty)
    assert call("attach", fd, 100 * PAGE, 1 << 40) == 0 and call("attach", fd) == 0
    assert call("detach", fd) == 0
    assert call("unpin", fd, 3 * PAGE, PAGE) == 0 == call("unpin", fd, 1000 * PAGE, PAGE)
    call("drop", fd)
    assert call("drop", fd) == (0, 0, 0) == call("drop", fd, 1000 * PAGE, PAGE)
    assert info(fd, 1000 * PAGE).length == 0 and info(fd, 5, 0).offset == 0


def test_structs(fd):
    def pin(size, data=b"", command=IOC_PIN):
        fcntl.ioctl(fd, command, bytearray(struct.pack("IIQQ", size, 0, 0, PAGE) + data))

    def failure(*arguments):
        with pytest.raises(OSError) as caught:
            pin(*arguments)
        return caught.value.errno

    assert failure(0) == errno.EINVAL and failure(23) == errno.EINVAL
    pin(24)
    pin(32, bytes(8))
    pin(32, bytes(8), IOC_PIN + (8 << 16))      # as a program that knows a larger struct calls it
    assert failure(32, b"\0\0\0\1" + bytes(4)) == errno.E2BIG
    assert failure(1 << 20, bytes(64)) == errno.E2BIG
    libc = ctypes.CDLL(None, use_errno=True)
    for command in (*range(IOC_PIN, IOC_PIN + 4), 0xC030FB08, 0xC050FB09):
        assert libc.ioctl(fd, ctypes.c_ulong(command), ctypes.c_void_p(8)) == -1 and ctypes.get_errno() == errno.EFAULT
    assert libc.ioctl(fd, ctypes.c_ulong(0x4018FB0A), ctypes.c_void_p(8)) == -1 and ctypes.get_errno() == errno.ENOTTY


def test_limits(fd):
    """More of them in test_pins.py."""
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 20, 64 << 20))
    run(f"mount -o remount,pin_limit={10 * PAGE},pin_limit_user={5 * PAGE} {MOUNT}")
    try:
        assert call("pin", fd, 0, 11 * PAGE) == errno.ENOMEM and info(fd).pinned == 0
        assert as_nobody(lambda: call("pin", fd, 0, 6 * PAGE)) == errno.ENOMEM and info(fd).pinned == 0
        assert as_nobody(lambda: call("pin", fd, 0, 5 * PAGE)) == 0
        assert call("unpin", fd) == 0 and call("pin", fd, 0, 6 * PAGE) == 0     # root has CAP_IPC_LOCK
        call("unpin", fd)

        def lock(touched):
            with Mapping(fd, 16 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as dax:
                if touched:
                    dax.read(0, 16 * PAGE)
                else:
                    call("drop", fd)
                try:
                    dax.lock(0, 8 * PAGE)
                    return 1 if info(fd).pinned else 0
                except OSError as problem:
                    return 2 if info(fd).pinned else problem.errno

        assert as_nobody(lambda: lock(False)) == errno.ENOMEM
        assert as_nobody(lambda: lock(True)) == 0
        assert call("pin", fd, 0, 8 * PAGE) == 0
        run(f"mount -o remount,pin_limit={PAGE} {MOUNT}")
        assert info(fd).pinned == 8 and call("pin", fd, 8 * PAGE, PAGE) == errno.ENOMEM
        options = run(f"grep {MOUNT} /proc/mounts")
        assert "pin_limit=4k" in options and "pin_limit_user=20k" in options
        for wrong in ("pin_limit=1x", "pin_limit=", "pin_limit=999999g"):
            assert os.system(f"mount -o remount,{wrong} {MOUNT} 2>/dev/null")
    finally:
        call("unpin", fd)
        run(f"mount -o remount,pin_limit=16M,pin_limit_user=8M {MOUNT}")


def test_drop(fd):
    assert call("pin", fd, 0, 4 * PAGE) == 0
    with Mapping(fd, 16 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as dax:
        dax.write(10 * PAGE, b"y")
        dax.read(0, 16 * PAGE)
    assert call("drop", fd) == (12, 4, 0)


@pytest.fixture(name="failing")
def failing_fixture():
    """forebay over a file system on a device that can be made to fail, as test_errors.py does it."""
    clean_up()
    run(f"dmsetup create ssd --table '0 {SECTORS} linear {SSD} 0'; dmsetup mknodes")
    yield Stack(fs="ext2", device="/dev/mapper/ssd", mib=256).make()
    os.chdir("/")
    table(fails_now=False)
    clean_up()


def test_refused(failing):
    """Storage that refuses writes: the call says so, and everything that isn't below is still there."""
    fd = synced_pages()
    table(fails_now=True)
    assert call("drop", fd) == errno.EIO
    assert info(fd).out_of_sync == 32 and failing.value("pages_out_of_sync") == 32
    assert os.pread(fd, PAGE, 0) == b"s" * PAGE
    table(fails_now=False)
    assert call("drop", fd) == (32, 0, 0)
    os.close(fd)


@pytest.fixture(name="few")
def few_fixture():
    """A cache with room for few files, all of it taken by files with out-of-sync pages."""
    clean_up()
    stack = Stack(cache=small_cache(8)).make()
    stack.umount()
    run(f"forebay format --force --files 4 {stack.cache}")
    stack.mount()
    for number in range(stack.value("files_total")):
        with open(MOUNT / f"{number}", "w+b", buffering=0) as file:
            os.fsync(file.fileno())
            file.write(b"synced")
            os.fsync(file.fileno())
            file.write(b"synced")
            os.fdatasync(file.fileno())
    assert stack.value("files_used") == stack.value("files_total")
    yield stack
    os.chdir("/")
    stack.destroy()
    clean_up()


def test_files(few):
    """No record for one file more: nobody waits for it; there is one again when the others' pages are clean."""
    begun = time.monotonic()
    run("dmesg -C")
    fd = os.open(MOUNT / "extra", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"x" * 16 * PAGE, 0)
    os.fsync(fd)
    assert call("pin", fd) == errno.ENOSPC and few.value("pages_pinned") == 0
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        Mapping(fd, 16 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC).write(0, b"y")
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS
    assert call("attach", fd) == 0 == call("detach", fd)
    below = few.value("syncs_lower")
    os.pwrite(fd, b"z", 0)
    os.fdatasync(fd)
    assert few.value("syncs_lower") == below + 1 and few.value("pages_free") > 0
    assert time.monotonic() - begun < 30
    assert "forebay format --files" in run("dmesg")
    few.drain()
    while call("pin", fd):
        assert time.monotonic() - begun < 90
        time.sleep(1)
    assert info(fd).pinned == 16
    os.close(fd)

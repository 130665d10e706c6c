# SPDX-License-Identifier: GPL-2.0-only
"""The table of forebay(3): every limit, flag and misuse of libforebay, through the library itself.

Each function below says which rows of the table it shows; test_table() checks that these are all rows, word
for word.
"""

import ctypes
import errno
import fcntl
import os
import re
import stat
import struct
import time
from pathlib import Path

import pytest
from clock import BY_THE_CLOCK
from conftest import clean_up
from interface import ROOT, SHOWN, call, mapped, shows
from libc import (ATTACHED, IOC_PIN, KEEP, MAP_PRIVATE, MAP_SHARED_VALIDATE, MAP_SYNC, PINNED, RUN, Mapping, drop, info, linkat,
                  pages)
from other_user import as_nobody
from stack import LOWER, MOUNT, PAGE, SSD, Stack, drop_caches, run, small_cache
from test_errors import SECTORS, synced_pages, table

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
    """Every row of the table is shown by the test that it names, and no test shows another."""
    page = (ROOT / "docs/man/forebay.3").read_text(encoding="utf-8")
    rows = re.findall(r"^\.It (.*) Ta (.*) Ta (\w+)$", re.sub(r"\b(Dv|Er|No) ", "", page).replace("\\-", "-"), re.M)
    assert len(rows) > 30
    assert {(f"{what}: {result}".replace(" ,", ","), test) for what, result, test in rows} == SHOWN


def test_works(fd):
    """The calls do what they say; the details are in the other files."""
    assert mapped(fd, 16 * PAGE) == 0 and mapped(fd, 16 * PAGE, MAP_SHARED_VALIDATE) == 0
    assert call("attach", fd, 0, PAGE) == 0
    assert call("pin", fd, 0, 4 * PAGE) == 0 and info(fd).pinned == 4
    assert call("unpin", fd, 0, PAGE) == 0 and info(fd).pinned == 3
    assert call("range_info", fd, 0, 0, RUN) == 0
    assert call("detach", fd) == 0 and info(fd, 0, PAGE).attributes == 0


@shows("any call, not on forebay: ENOTTY", "the same, a device that lies on it: ENOTTY",
       "forebay_mmap, neither forebay nor DAX: EOPNOTSUPP")
def test_elsewhere(folder):
    """The calls fail on the lower file system, a pipe and a device. A device node on the mount knows no
    such ioctl: its driver gives an answer of its own."""
    other = os.open(LOWER / "other", os.O_RDWR | os.O_CREAT)
    os.ftruncate(other, PAGE)
    null = os.open("/dev/null", os.O_RDWR)
    os.mknod(folder / "random", 0o600 | stat.S_IFCHR, os.makedev(1, 9))
    os.mkfifo(folder / "fifo")
    random, fifo = os.open(folder / "random", os.O_RDONLY), os.open(folder / "fifo", os.O_RDWR)
    with pytest.raises(OSError) as caught:
        fcntl.ioctl(random, IOC_PIN, bytes(24))
    assert caught.value.errno == errno.EINVAL, "the device's own answer"
    for file in (other, null, random, fifo, os.pipe()[0]):
        for name in RANGED:
            assert call(name, file) == errno.ENOTTY
    assert mapped(other, PAGE) == errno.EOPNOTSUPP
    for file in (other, null, random, fifo):
        os.close(file)


@shows("forebay_mmap, MAP_PRIVATE: EINVAL", "forebay_mmap, MAP_ANONYMOUS: EINVAL", "MAP_PRIVATE | MAP_SYNC: no DAX mapping")
def test_private(fd):
    assert mapped(fd, PAGE, MAP_PRIVATE) == errno.EINVAL
    assert mapped(-1, PAGE, 0x20) == errno.EINVAL
    with Mapping(fd, PAGE, MAP_PRIVATE | MAP_SYNC) as mapping:
        mapping.write(0, b"x")
        assert info(fd).attributes == 0


@shows("forebay_mmap to write, opened to read: EACCES", "a closed descriptor: EBADF",
       "a descriptor opened with O_PATH: EBADF", "attach, detach, opened to read: EBADF", "the same with FOREBAY_KEEP: done",
       "pin, drop, info, opened to read: done", "a directory: EINVAL", "forebay_mmap, a directory: EOPNOTSUPP")
def test_opened(fd, folder):
    reading = os.open(folder / "f", os.O_RDONLY)
    path = os.open(folder / "f", os.O_PATH)
    directory = os.open(folder, os.O_RDONLY)
    assert mapped(reading, PAGE) == errno.EACCES and mapped(reading, PAGE, 0, 1) == 0
    for name in RANGED:
        assert call(name, 999) == errno.EBADF
        assert call(name, path) == errno.EBADF
        assert call(name, directory) == errno.EINVAL
    assert mapped(999, PAGE) == errno.EBADF == mapped(path, PAGE) and mapped(directory, PAGE) == errno.EOPNOTSUPP
    assert call("attach", reading) == errno.EBADF == call("detach", reading)
    assert call("attach", reading, 0, 0, KEEP) == 0 and info(reading).attributes == ATTACHED
    assert call("detach", reading, 0, 0, KEEP) == 0 and info(reading).attributes == 0
    assert call("pin", reading) == 0 == call("range_info", reading) == call("unpin", reading)
    assert call("drop", reading) == (16, 0, 0)
    for file in (reading, path, directory):
        os.close(file)
    del fd


@shows("the same, caller may not write it: EPERM", "forebay_mmap to read, the same: no DAX mapping")
def test_strangers(fd, folder):
    """The file is root's; more in tests/attack/test_permissions.py."""
    os.fchmod(fd, 0o644)
    before = info(fd)

    def calls():
        reading = os.open(folder / "f", os.O_RDONLY)
        found = [call(name, reading) for name in ("pin", "unpin", "drop", "range_info")]
        return int(found != [errno.EPERM] * 4 or mapped(reading, 16 * PAGE, 0, 1) != 0)
    assert as_nobody(calls) == 0
    assert info(fd) == before


@shows("an unknown flag: EINVAL", "FOREBAY_KEEP without privilege: EPERM", "FOREBAY_KEEP, undone without it: done, stays")
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
    assert call("attach", fd, 0, PAGE, KEEP) == 0 == call("detach", fd)
    assert info(fd, 0, PAGE).attributes == PINNED | ATTACHED
    assert call("unpin", fd, 0, 0, KEEP) == 0 == call("detach", fd, 0, 0, KEEP) and info(fd).attributes == 0


@shows("pin, attach, an immutable file: EPERM")
def test_immutable(fd, folder):
    run(f"chattr +i {folder / 'f'}")
    try:
        for name in ("pin", "attach"):
            assert call(name, fd, 0, PAGE) == errno.EPERM
            assert call(name, fd, 0, PAGE, KEEP) == errno.EPERM
        drop_caches()
        assert call("attach", fd, 0, PAGE) == errno.EPERM, "though nothing could move now"
        assert info(fd).pinned == 0 == info(fd).attributes
    finally:
        run(f"chattr -i {folder / 'f'}")
    assert call("pin", fd, 0, PAGE) == 0 == call("attach", fd, 0, PAGE)
    run(f"chattr +i {folder / 'f'}")
    assert call("unpin", fd, 0, PAGE) == 0 == call("detach", fd, 0, PAGE)
    run(f"chattr -i {folder / 'f'}")


@shows("forebay_mmap, a file without a name: EOPNOTSUPP", "attach, pin, a file without a name: EOPNOTSUPP",
       "all three, one with pages in PMem: done", "attach, pin with FOREBAY_KEEP: ENOENT")
def test_deleted(fd, folder):
    other = os.open(folder / "g", os.O_RDWR | os.O_CREAT)
    os.pwrite(other, b"x" * 16 * PAGE, 0)
    assert call("pin", other, 0, PAGE) == 0
    for name in "fg":
        os.unlink(folder / name)
    for cached in (True, False):
        for name in ("attach", "pin"):
            assert call(name, fd) == errno.EOPNOTSUPP and info(fd).attributes == 0
            assert call(name, fd, 0, PAGE, KEEP) == errno.ENOENT and info(fd).attributes == 0
        assert mapped(fd, PAGE) == errno.EOPNOTSUPP
        if cached:
            drop_caches()
            assert info(fd).volatile == 0, "nothing could move now"
    for name in ("attach", "pin"):
        assert call(name, other) == 0
        assert call(name, other, 0, 0, KEEP) == errno.ENOENT
    assert info(other).pinned == 16 and mapped(other, PAGE) == 0
    os.close(other)
    nameless = os.open(folder, os.O_RDWR | os.O_TMPFILE)
    os.pwrite(nameless, b"x" * PAGE, 0)
    assert mapped(nameless, PAGE) == errno.EOPNOTSUPP
    linkat(f"/proc/self/fd/{nameless}", folder / "named")
    assert mapped(nameless, PAGE) == 0
    os.close(nameless)


@shows("a negative offset or length: EINVAL", "offset + length beyond 2^63-1: EINVAL",
       "pin beyond the end of the file: EINVAL", "pin of an empty file: EINVAL", "attach beyond the end: done",
       "unpin of what isn't pinned: done", "drop of what isn't in PMem: done, 0 dropped",
       "info beyond the end, length 0 asked for: done, length 0", "info beyond the end, more asked for: done, that length")
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
    assert info(fd, 1000 * PAGE, 7 * PAGE)[:2] == (1000 * PAGE, 7 * PAGE)


@shows("ioctl: a struct too small: EINVAL", "ioctl: a larger one, rest zero: done",
       "ioctl: a larger one, rest not zero: E2BIG", "ioctl: one larger than a page: E2BIG", "ioctl: a bad address: EFAULT")
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
    pin(PAGE, bytes(PAGE - 24))
    pin(32, bytes(8), IOC_PIN + (8 << 16))      # as a program that knows a larger struct calls it
    assert failure(32, b"\0\0\0\1" + bytes(4)) == errno.E2BIG
    assert failure(PAGE + 1, bytes(PAGE)) == errno.E2BIG
    libc = ctypes.CDLL(None, use_errno=True)
    for command in (*range(IOC_PIN, IOC_PIN + 4), 0xC030FB08, 0xC050FB09):
        assert libc.ioctl(fd, ctypes.c_ulong(command), ctypes.c_void_p(8)) == -1 and ctypes.get_errno() == errno.EFAULT
    assert libc.ioctl(fd, ctypes.c_ulong(0x4018FB0A), ctypes.c_void_p(8)) == -1 and ctypes.get_errno() == errno.ENOTTY


@shows("pin over pin_limit: ENOMEM, nothing pinned", "pin over pin_limit_user: ENOMEM, nothing pinned",
       "the same with CAP_IPC_LOCK: done", "mlock over a limit, pages to be faulted: ENOMEM, not pinned",
       "mlock over a limit, pages there: done, pinned up to it", "limits lowered by a remount: what is pinned stays")
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
                    return 0 if drop(fd) == (11, 5, 0) and info(fd).pinned == 5 else 1
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


@shows("drop of pinned pages: done, they stay")
def test_drop(fd):
    assert call("pin", fd, 0, 4 * PAGE) == 0
    with Mapping(fd, 16 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as dax:
        dax.write(10 * PAGE, b"y")
        dax.read(0, 16 * PAGE)
    assert call("drop", fd) == (12, 4, 0)


@shows("pin of a page that hardware uses: EBUSY, 5 s later")
def test_busy(fd):
    """A volatile page that a disk reads into, which takes its time."""
    run("dmsetup create slow --table '0 8192 zero'; dmsetup mknodes")
    slow = os.open("/dev/mapper/slow", os.O_RDONLY | os.O_DIRECT)
    call("drop", fd)
    run("dmsetup suspend slow")
    try:
        pid = os.fork()
        if not pid:
            plain = Mapping(fd, PAGE)
            plain.write(0, b"there")        # so that the child waits for the disk, and for nothing else
            os._exit(os.preadv(slow, [(ctypes.c_char * PAGE).from_address(plain.address)], 0) != PAGE)
        waits = Path(f"/proc/{pid}/stat")
        for _ in range(3):          # at one look alone it may wait for a page
            while " D " not in waits.read_text(encoding="ascii"):
                time.sleep(0.1)
            time.sleep(0.1)
        begun = time.monotonic()
        assert call("pin", fd, 0, 2 * PAGE) == errno.EBUSY and info(fd).attributes == 0
        assert 4 < time.monotonic() - begun < 60
    finally:
        run("dmsetup resume slow")
    assert os.waitpid(pid, 0)[1] == 0
    assert call("pin", fd, 0, 2 * PAGE) == 0 and os.pread(fd, PAGE, 0) == bytes(PAGE)
    os.close(slow)
    run("dmsetup remove slow")


@pytest.fixture(name="failing")
def failing_fixture():
    """forebay over a file system on a device that can be made to fail, as test_errors.py does it."""
    clean_up()
    run(f"dmsetup create ssd --table '0 {SECTORS} linear {SSD} 0'; dmsetup mknodes")
    yield Stack(fs="ext2", device="/dev/mapper/ssd", mib=256).make()
    os.chdir("/")
    table(fails_now=False)
    clean_up()


@shows("drop while storage refuses writes: EIO, clean ones go")
def test_refused(failing):
    """Storage refuses writes: the call reports that, and all data that aren't below are still in the
    cache."""
    fd = synced_pages()
    failing.drain()
    for page in range(8):
        os.pwrite(fd, b"new" * PAGE, page * 3 * PAGE)
    os.fsync(fd)
    assert info(fd)[4:6] == (8, 24)
    table(fails_now=True)
    assert call("drop", fd) == errno.EIO
    assert info(fd)[4:6] == (0, 24) and failing.value("pages_out_of_sync") == 24
    assert os.pread(fd, 3, 0) == b"new" == os.pread(fd, 3, 23 * PAGE + 1)
    table(fails_now=False)
    assert call("drop", fd) == (24, 0, 0)
    os.close(fd)


@pytest.fixture(name="few")
def few_fixture():
    """A cache with space for few files, all of it used by files with out-of-sync pages."""
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
    assert stack.value("files_used") >= stack.value("files_total") - 1      # the worker may have taken one
    yield stack
    os.chdir("/")
    stack.destroy()
    clean_up()


@BY_THE_CLOCK
@shows("pin, the table of files is full: done, after a wait", "a store to a DAX mapping, the same: done, after a wait")
def test_files(few):
    """All file records are in use: the worker takes a record from a file that it has written back."""
    begun = time.monotonic()
    for name in ("pinned", "mapped"):
        fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"x" * 16 * PAGE, 0)
        os.fsync(fd)
        if name == "pinned":
            assert call("pin", fd) == 0 and info(fd).pinned == 16
        else:
            with Mapping(fd, 16 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
                mapping.write(0, b"y")
                assert info(fd).out_of_sync
        os.close(fd)
    assert time.monotonic() - begun < 30
    assert all((MOUNT / f"{number}").read_bytes() == b"synced" * 2 for number in range(few.value("files_total")))


@pytest.mark.parametrize("stack", [{"fs": "xfs"}], indirect=True)
@shows("pin beyond 4 PiB: EFBIG")
def test_far(stack):
    """No page record can name an offset that large."""
    fd = os.open(MOUNT / "far", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"x" * PAGE, 1 << 52)
    os.pwrite(fd, b"x" * PAGE, (1 << 52) - PAGE)
    os.fsync(fd)
    assert call("pin", fd, 1 << 52, PAGE) == errno.EFBIG and stack.value("pages_pinned") == 0
    assert call("pin", fd, (1 << 52) - PAGE, PAGE) == 0 and pages(fd) == 1
    os.close(fd)

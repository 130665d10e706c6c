# SPDX-License-Identifier: GPL-2.0-only
"""Reading and writing in every way that Linux has, over volatile and DAX pages alike."""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import subprocess
import sys
import threading
import time

import pytest
from libc import (COLLAPSE_RANGE, FICLONE, FICLONERANGE, FIDEDUPERANGE, INSERT_RANGE, KEEP_SIZE, MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC,
                  PUNCH_HOLE, ZERO_RANGE, Mapping, aligned, fallocate)
from stack import MOUNT, PAGE, drop_caches, read_below, run


def half_dax(path, pages=16):
    """A file of which every second page is a DAX page; its contents."""
    data = b"".join(bytes([65 + i]) * PAGE for i in range(pages))
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, data, 0)
    os.fsync(fd)
    run(f"forebay drain {path.parent}")
    for i in range(0, pages, 2):
        os.pwrite(fd, bytes([97 + i]), i * PAGE)
        os.fdatasync(fd)
    os.close(fd)
    return b"".join((bytes([97 + i]) + bytes([65 + i]) * (PAGE - 1)) if i % 2 == 0 else bytes([65 + i]) * PAGE
                    for i in range(pages))


def test_read_ways(folder):
    data = half_dax(folder / "f")
    fd = os.open(folder / "f", os.O_RDWR)
    assert os.pread(fd, 1 << 20, 0) == data
    assert os.pread(fd, 10000, 3333) == data[3333:13333]
    memory = aligned(length=len(data))
    direct = os.open(folder / "f", os.O_RDONLY | os.O_DIRECT)
    assert os.preadv(direct, [memory], 0) == len(data) and memory[:] == data
    for flags in (MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE | MAP_SYNC):
        with Mapping(fd, len(data), flags) as mapping:
            assert mapping.read(0, len(data)) == data
    pieces = [bytearray(1000), bytearray(5000), bytearray(1)]
    assert os.preadv(fd, pieces, PAGE - 500) == 6001
    assert b"".join(pieces) == data[PAGE - 500:PAGE + 5501]
    os.close(fd)
    os.close(direct)


def test_splice_and_sendfile(folder):
    data = half_dax(folder / "f")
    fd = os.open(folder / "f", os.O_RDONLY)
    read_end, write_end = os.pipe()
    got = b""
    while True:
        count = os.splice(fd, write_end, 1 << 16)
        if not count:
            break
        got += os.read(read_end, count)
    assert got == data
    out = os.open(folder / "copy", os.O_RDWR | os.O_CREAT)
    done = 0
    while done < len(data):
        done += os.sendfile(out, fd, done, len(data) - done)
    assert (folder / "copy").read_bytes() == data
    os.write(write_end, b"spliced in")
    assert os.splice(read_end, out, 10, offset_dst=100) == 10
    os.fsync(out)
    assert (folder / "copy").read_bytes()[95:115] == data[95:100] + b"spliced in" + data[110:115]
    for each in (fd, out, read_end, write_end):
        os.close(each)


def test_direct_write_from_absent_memory(folder):
    """A buffer of which a part was never touched: once, this wrote later bytes to the earlier place."""
    size = 1 << 20
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    os.ftruncate(fd, size)
    memory = mmap.mmap(-1, size)
    memory[:65536] = b"a" * 65536
    view = memoryview(memory)
    assert os.pwritev(fd, [view[0:0], view[:8192], view[8192:8192], view[8192:]], 0) == size
    assert (folder / "f").read_bytes() == b"a" * 65536 + bytes(size - 65536)
    absent = mmap.mmap(-1, size)
    assert os.preadv(fd, [absent], 0) == size and absent[:] == memory[:]
    with pytest.raises(OSError):
        os.pwrite(fd, b"x" * 4095, 0)
    os.close(fd)


@pytest.mark.parametrize("call", ["pwrite", "preadv"])
def test_direct_with_memory_of_a_fork(folder, call):
    """Private memory that a living child shares: once, a direct write from it went round for ever."""
    (folder / "f").write_bytes(b"f" * PAGE)
    use = ("os.pwrite(fd, memory, 0)" if call == "pwrite" else "os.preadv(fd, [memory], 0)")
    code = (f"import mmap, os, signal\nmemory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nmemory[:] = b'm' * 4096\n"
            "child = os.fork()\nif not child: signal.pause()\n"
            f"try:\n fd = os.open({str(folder / 'f')!r}, os.O_RDWR | os.O_DIRECT)\n assert {use} == 4096\n"
            f" assert memory[:] == open({str(folder / 'f')!r}, 'rb').read()\nfinally: os.kill(child, 9)")
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


def test_bad_memory(folder):
    data = half_dax(folder / "f")
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (os.O_RDWR, os.O_RDWR | os.O_DIRECT):
        fd = os.open(folder / "f", flags)
        for call in (libc.pread, libc.pwrite):
            assert call(fd, ctypes.c_void_p(0x1000), 4 * PAGE, ctypes.c_long(0)) == -1
            assert ctypes.get_errno() == 14
        os.close(fd)
    assert (folder / "f").read_bytes() == data


def test_write_of_a_page_from_its_own_mapping(folder):
    """Once, taking the target out of its mappings took the source away, again and again."""
    path = folder / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"p" * 16 * PAGE, 0)
    os.fsync(fd)
    os.pwrite(fd, b"q" * PAGE, 0)
    os.fdatasync(fd)        # a sync that was paid in PMem: whole pages are taken at once from now on
    code = (f"import ctypes, os, sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom libc import *\n"
            f"fd = os.open({str(path)!r}, os.O_RDWR)\nm = Mapping(fd, 16 * 4096)\n"
            "for target in 5, 6:\n m.read(5 * 4096, 1)\n"
            " assert os.pwritev(fd, [(ctypes.c_char * 4096).from_address(m.address + 5 * 4096)], target * 4096) == 4096")
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
    assert path.read_bytes() == b"q" * PAGE + b"p" * 15 * PAGE
    os.close(fd)


def test_append(folder):
    """Two descriptors append at once: nothing is overwritten."""
    def append(letter):
        fd = os.open(folder / "f", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for i in range(60):
            os.write(fd, letter * 777)
            if i % 5 == 0:
                os.fdatasync(fd)
        os.close(fd)

    threads = [threading.Thread(target=append, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    data = (folder / "f").read_bytes()
    assert len(data) == 3 * 60 * 777
    chunks = [data[i:i + 777] for i in range(0, len(data), 777)]
    assert all(len(set(chunk)) == 1 for chunk in chunks)


@pytest.mark.parametrize("flag", ["O_SYNC", "O_DSYNC"])
def test_synchronous_writes(folder, shared, flag):
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT | getattr(os, flag))
    os.pwrite(fd, b"x" * 4 * PAGE, 0)
    os.pwrite(fd, b"y", 0)
    absorbed, writes = shared.value("syncs_absorbed"), shared.writes()
    for i in range(50):
        os.pwrite(fd, b"z" * 100, i * 100)
    assert shared.value("syncs_absorbed") - absorbed >= 50
    assert shared.writes() - writes < 10
    assert os.pread(fd, 5100, 0) == b"z" * 5000 + b"x" * 100
    os.close(fd)


@pytest.mark.parametrize("engine", ["psync", "mmap", "libaio --iodepth=16", "io_uring --iodepth=16", "libaio --iodepth=8 --direct=1",
                                    "io_uring --iodepth=8 --direct=1", "psync --direct=1", "psync --sync=1", "pvsync2",
                                    "io_uring --iodepth=8 --fixedbufs --direct=1", "splice"])
def test_fio_verify(folder, engine):
    rw = "rw" if engine == "splice" else "randrw"
    run(f"cd {folder} && fio --name=v --filename=f --ioengine={engine} --rw={rw} --bsrange=4k-64k --size=4M --loops=2 --fsync=16 "
        "--verify=crc32c --verify_fatal=1 --verify_backlog=32 --end_fsync=1 --randrepeat=0")


@pytest.mark.parametrize("dax", [False, True])
def test_fallocate(folder, dax):
    path = folder / "f"
    data = bytearray(half_dax(path) if dax else bytes(range(256)) * 256)
    if not dax:
        path.write_bytes(data)
    fd = os.open(path, os.O_RDWR)
    fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 100, 3 * PAGE)
    data[100:100 + 3 * PAGE] = bytes(3 * PAGE)
    fallocate(fd, ZERO_RANGE, 5 * PAGE + 7, 2 * PAGE)
    data[5 * PAGE + 7:7 * PAGE + 7] = bytes(2 * PAGE)
    fallocate(fd, COLLAPSE_RANGE, PAGE, 2 * PAGE)
    del data[PAGE:3 * PAGE]
    fallocate(fd, INSERT_RANGE, 4 * PAGE, PAGE)
    data[4 * PAGE:4 * PAGE] = bytes(PAGE)
    fallocate(fd, KEEP_SIZE, 0, 100 * PAGE)
    assert os.pread(fd, 1 << 20, 0) == data
    fallocate(fd, 0, 0, len(data) + 5)
    os.fsync(fd)
    drop_caches()
    assert os.pread(fd, 1 << 20, 0) == data + bytes(5)
    os.close(fd)


def test_truncate_and_grow(folder):
    """What was truncated never comes back, in either kind of page, below or above."""
    path = folder / "f"
    data = half_dax(path)
    fd = os.open(path, os.O_RDWR)
    for size in (9 * PAGE + 5, 6 * PAGE, 3 * PAGE - 1, 17):
        os.ftruncate(fd, size)
        os.ftruncate(fd, 16 * PAGE)
        assert os.pread(fd, 1 << 20, 0) == data[:size] + bytes(16 * PAGE - size)
        os.fsync(fd)
        run(f"forebay drain {folder}")
        drop_caches()
        assert os.pread(fd, 1 << 20, 0) == data[:size] + bytes(16 * PAGE - size)
    os.close(fd)


def test_seek_and_fiemap(folder):
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 64 * PAGE)
    os.pwrite(fd, b"data", 10 * PAGE)
    os.fsync(fd)
    os.pwrite(fd, b"more", 10 * PAGE)
    os.pwrite(fd, b"end", 40 * PAGE)
    os.fdatasync(fd)
    assert os.lseek(fd, 0, os.SEEK_DATA) == 10 * PAGE
    assert os.lseek(fd, 10 * PAGE, os.SEEK_HOLE) == 11 * PAGE
    assert os.lseek(fd, 11 * PAGE, os.SEEK_DATA) == 40 * PAGE
    assert os.lseek(fd, 40 * PAGE, os.SEEK_HOLE) == 41 * PAGE
    with pytest.raises(OSError):
        os.lseek(fd, 41 * PAGE, os.SEEK_DATA)
    extents = run(f"filefrag -v {folder / 'f'}")
    assert " 10.. " in extents and " 40.. " in extents
    os.close(fd)


def test_copy_file_range(folder):
    data = half_dax(folder / "f")
    source, target = os.open(folder / "f", os.O_RDONLY), os.open(folder / "g", os.O_RDWR | os.O_CREAT)
    half_dax(folder / "g")
    assert os.copy_file_range(source, target, 5 * PAGE, 3 * PAGE, PAGE + 1) == 5 * PAGE
    assert os.pread(target, 5 * PAGE, PAGE + 1) == data[3 * PAGE:8 * PAGE]
    assert os.copy_file_range(source, target, PAGE, 1 << 30, 0) == 0
    outside = os.open("/tmp/outside", os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError):
        os.copy_file_range(source, outside, PAGE, 0, 0)
    for fd in (source, target, outside):
        os.close(fd)


@pytest.mark.parametrize("stack", [{"fs": "xfs"}, {"fs": "btrfs"}], indirect=True, ids=lambda p: p["fs"])
def test_reflink(stack):
    data = half_dax(MOUNT / "f")
    with open(MOUNT / "f", "r+b") as source, open(MOUNT / "g", "w+b") as target:
        fcntl.ioctl(target, FICLONE, source.fileno())
        assert target.read() == data
        os.pwrite(target.fileno(), b"changed", 0)
        os.fsync(target.fileno())
        os.pwrite(source.fileno(), b"SOURCE!", 4 * PAGE)
        os.fdatasync(source.fileno())
        assert os.pread(target.fileno(), 7, 4 * PAGE) == data[4 * PAGE:4 * PAGE + 7]
        assert os.pread(source.fileno(), 7, 0) == data[:7]
    stack.umount()
    assert read_below("g") == b"changed" + data[7:]
    assert read_below("f") == data[:4 * PAGE] + b"SOURCE!" + data[4 * PAGE + 7:]


@pytest.mark.parametrize("stack", [{"fs": "xfs"}], indirect=True, ids=["xfs"])
@pytest.mark.parametrize("how", ["write", "store"])
def test_clone_is_of_one_moment(stack, how):
    """A writer counts in a page that is in PMem, then in one that isn't. A clone has no later count in the second page, as on
    the lower file system: so a clone of a database that is in use can be recovered."""
    del stack
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, bytes(100 * PAGE), 0)
    os.fsync(fd)
    code = f"""
import os, struct, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from libc import *
fd = os.open({str(MOUNT / "f")!r}, os.O_RDWR)
mapping = Mapping(fd, 4096, MAP_SHARED_VALIDATE | MAP_SYNC)
for number in range(1, 1 << 40):
    if {how!r} == "store":
        mapping.write(0, struct.pack("Q", number))
    else:
        os.pwrite(fd, struct.pack("Q", number), 0)
    os.pwrite(fd, struct.pack("Q", number), 50 * 4096)
"""
    torn = []
    with subprocess.Popen([sys.executable, "-c", code]) as writer:
        try:
            deadline = time.time() + 60
            while not os.pread(fd, 1, 50 * PAGE)[0] and time.time() < deadline:
                time.sleep(0.1)
            for _ in range(40):
                with open(MOUNT / "g", "w+b") as clone:
                    fcntl.ioctl(clone, FICLONE, fd)
                    first, second = (struct.unpack("Q", os.pread(clone.fileno(), 8, page * PAGE))[0] for page in (0, 50))
                if first < second:
                    torn.append((first, second))
            assert writer.poll() is None
        finally:
            writer.kill()
    os.close(fd)
    assert second > 0 and not torn, torn


@pytest.mark.parametrize("stack", [{"fs": "xfs"}], indirect=True, ids=["xfs"])
def test_clone_within_a_file(stack):
    """Source and target are ranges of one file; pages of both are in PMem."""
    data = half_dax(MOUNT / "f")
    fd = os.open(MOUNT / "f", os.O_RDWR)
    for source, target in ((0, 8), (8, 2), (1, 12)):
        fcntl.ioctl(fd, FICLONERANGE, struct.pack("qQQQ", fd, source * PAGE, 2 * PAGE, target * PAGE))
        data = data[:target * PAGE] + data[source * PAGE:(source + 2) * PAGE] + data[(target + 2) * PAGE:]
        assert os.pread(fd, 16 * PAGE, 0) == data
        os.pwrite(fd, b"changed", source * PAGE)
        os.fdatasync(fd)
        data = data[:source * PAGE] + b"changed" + data[source * PAGE + 7:]
    os.close(fd)
    stack.umount()
    assert read_below("f") == data


@pytest.mark.parametrize("stack", [{"fs": "xfs"}, {"fs": "ext4"}], indirect=True, ids=lambda p: p["fs"])
def test_deduplication_leaves_privileges(stack):
    """The contents stay as they are. So the set-user-ID bit, the capability and ctime stay, whatever the answer is."""
    del stack
    for name, byte in (("source", b"a"), ("same", b"a"), ("other", b"b")):
        (MOUNT / name).write_bytes(byte * 4 * PAGE)
        run(f"chmod 4755 {MOUNT / name}; setcap cap_net_raw+p {MOUNT / name}")
    os.sync()
    for name in ("same", "other"):
        with open(MOUNT / "source", "rb") as source, open(MOUNT / name, "r+b") as target:
            before = os.fstat(target.fileno())
            request = bytearray(struct.pack("QQHHIqQQiI", 0, 4 * PAGE, 1, 0, 0, target.fileno(), 0, 0, 0, 0))
            try:
                fcntl.ioctl(source, FIDEDUPERANGE, request)
                print(name, struct.unpack("QQHHIqQQiI", request)[-2])
            except OSError as error:
                print(name, error)
            after = os.fstat(target.fileno())
            assert (after.st_mode, after.st_ctime_ns) == (before.st_mode, before.st_ctime_ns)
            assert os.getxattr(MOUNT / name, "security.capability")
            assert target.read() == {"same": b"a", "other": b"b"}[name] * 4 * PAGE


def test_clone_that_cannot_be_leaves_privileges(stack):
    """ext4 has no clones: the call fails before it changes anything."""
    del stack
    for name in ("source", "target"):
        (MOUNT / name).write_bytes(b"a" * PAGE)
        run(f"chmod 4755 {MOUNT / name}; setcap cap_net_raw+p {MOUNT / name}")
    with open(MOUNT / "source", "rb") as source, open(MOUNT / "target", "r+b") as target:
        with pytest.raises(OSError) as error:
            fcntl.ioctl(target, FICLONE, source.fileno())
        assert error.value.errno == errno.EOPNOTSUPP
        assert os.fstat(target.fileno()).st_mode & 0o7777 == 0o4755
        assert os.getxattr(MOUNT / "target", "security.capability")


def test_mapping_beyond_the_end(folder):
    """A touch behind the last page is SIGBUS, as everywhere."""
    half_dax(folder / "f", 2)
    code = (f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom libc import *\n"
            f"m = Mapping(os.open({str(folder / 'f')!r}, os.O_RDWR), 65536, {{}})\nm.read(4096, 10); m.read(8192, 1)")
    for flags in (MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE | MAP_SYNC):
        assert subprocess.run(["/usr/bin/python3", "-c", code.format(flags)], check=False).returncode == -7


def test_private_mapping(folder):
    data = half_dax(folder / "f")
    fd = os.open(folder / "f", os.O_RDWR)
    with Mapping(fd, len(data), MAP_PRIVATE) as private, Mapping(fd, len(data), MAP_SHARED) as shared:
        for page in range(4):
            private.write(page * PAGE, b"private")
        shared.write(8 * PAGE, b"shared")
        assert os.pread(fd, 7, 0) == data[:7]
        assert private.read(0, 7) == b"private"
        assert private.read(8 * PAGE, 6) == b"shared"
        os.pwrite(fd, b"later", 0)
        assert private.read(0, 7) == b"private"
        os.fsync(fd)
        assert private.read(8 * PAGE, 6) == b"shared"
    os.close(fd)


def test_mlock_and_fork(folder):
    data = half_dax(folder / "f")
    fd = os.open(folder / "f", os.O_RDWR)
    with Mapping(fd, len(data), MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        assert ctypes.CDLL(None).mlock(ctypes.c_void_p(mapping.address), ctypes.c_size_t(len(data))) == 0
        assert str(folder / "f") in run(f"cat /proc/{os.getpid()}/maps")
        pid = os.fork()
        if not pid:
            mapping.write(5 * PAGE, b"child")
            os._exit(0)
        os.waitpid(pid, 0)
        assert mapping.read(5 * PAGE, 5) == b"child"
        assert os.pread(fd, 5, 5 * PAGE) == b"child"
        run(f"forebay drain {folder}")
        assert mapping.read(5 * PAGE, 5) == b"child"
        mapping.write(5 * PAGE, b"again")
        assert os.pread(fd, 5, 5 * PAGE) == b"again"
    os.close(fd)

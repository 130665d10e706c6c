# SPDX-License-Identifier: GPL-2.0-only
"""Direct I/O: DAX pages are copied, all other pages are read and written by storage. By system call, aio
and io_uring; coherent with mappings."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import clean_up, destroyed_afterwards
from libc import MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, aligned, info, pages
from other_user import NOBODY, python_as
from stack import LOWER, MOUNT, PAGE, SSD, Stack, run
from test_errors import SECTORS

DAX = MAP_SHARED_VALIDATE | MAP_SYNC
ROOT = Path(__file__).resolve().parents[2]
SLOW = 30               # ms

# Two threads of the file's owner. Each page is written after its thread has set the bits, so the last call takes them away.
SET_AND_WRITE = """
import mmap, os, sys, threading
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
def work(first):
    memory = mmap.mmap(-1, 4096)
    for turn in range(8):
        for page in range(first, 64, 2):
            os.fchmod(fd, 0o6755)
            assert os.pwritev(fd, [memory], page * 4096) == 4096
threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

# What the removal needs may block, so a request that must not block is refused.
NOWAIT = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
try:
    os.pwritev(fd, [mmap.mmap(-1, 4096)], 0, os.RWF_NOWAIT)
except BlockingIOError:
    sys.exit(11)
"""

# Stores to a page in two: the kernel's writeback then allocates blocks all the time, and holds the inode's lock for it.
STORE = """
import mmap, os, sys, time
with mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0) as memory:
    for at in range(16 << 20, len(memory), 8192):
        memory[at] = 1
        if not at & 0x3ffff:
            time.sleep(0.02)
"""


def mixed(folder, count=64, dax=(16, 8)):
    """A file with DAX pages in the middle; a descriptor, and a direct one."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"".join(bytes([p % 256]) * PAGE for p in range(count)), 0)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with Mapping(fd, dax[1] * PAGE, DAX, offset=dax[0] * PAGE) as mapping:
        for page in range(dax[1]):
            mapping.write(page * PAGE, b"dax page")
    assert pages(fd) == dax[1]
    return fd, os.open(folder / "f", os.O_RDWR | os.O_DIRECT)


def test_split(folder):
    """A request over DAX and other pages takes each byte from its place, and no page is moved, dropped
    or written back."""
    fd, direct = mixed(folder)
    memory = aligned(length=64 * PAGE)
    assert os.preadv(direct, [memory], 0) == 64 * PAGE
    for page in range(64):
        expected = b"dax page" if 16 <= page < 24 else bytes([page]) * 8
        assert memory[page * PAGE:page * PAGE + 8] == expected
    before = info(fd)
    memory[:] = b"".join(b"%04d" % p * (PAGE // 4) for p in range(64))
    assert os.pwritev(direct, [memory], 0) == 64 * PAGE
    after = info(fd)
    assert (after.clean + after.out_of_sync) == 8 == (before.clean + before.out_of_sync) and after.out_of_sync == 8
    for page in range(64):
        assert os.pread(fd, 4, page * PAGE + 8) == b"%04d" % page
    os.close(fd)
    os.close(direct)


def test_dax_pages_cost_storage_nothing(folder, shared):
    """No I/O below, no writeback, no invalidation."""
    fd, direct = mixed(folder)
    run(f"mount -o remount,commit=900 {LOWER} && sync")     # it commits the file's times now and then
    memory = aligned(b"w" * PAGE)
    writes, back = shared.writes(), shared.value("pages_written_back")
    reads = int(Path("/sys/block/nvme0n1/stat").read_text(encoding="ascii").split()[0])
    for turn in range(200):
        os.pwritev(direct, [memory], (16 + turn % 8) * PAGE)
        os.preadv(direct, [memory], (16 + turn % 8) * PAGE)
    assert shared.writes() - writes < 10 and shared.value("pages_written_back") == back
    assert int(Path("/sys/block/nvme0n1/stat").read_text(encoding="ascii").split()[0]) - reads < 10
    assert info(fd).out_of_sync == 8
    run(f"mount -o remount,commit=5 {LOWER}")
    os.close(fd)
    os.close(direct)


def test_coherent_with_mappings(folder):
    """Direct writes and reads beside stores to a DAX and a plain mapping, page by page."""
    fd, direct = mixed(folder)
    rng, model = random.Random(5), bytearray(os.pread(fd, 64 * PAGE, 0))
    with Mapping(fd, 64 * PAGE, MAP_SHARED) as plain, Mapping(fd, 8 * PAGE, DAX, offset=16 * PAGE) as dax:
        for _ in range(400):
            page, count = rng.randrange(60), rng.randint(1, 4)
            start, length = page * PAGE, count * PAGE
            data = rng.randbytes(16) * (length // 16)
            how = rng.randrange(5)
            if how == 0:
                os.pwritev(direct, [aligned(data)], start)
                model[start:start + length] = data
            elif how == 1:
                plain.write(start, data)
                model[start:start + length] = data
            elif how == 2 and 16 <= page and page + count <= 24:
                dax.write(start - 16 * PAGE, data)
                model[start:start + length] = data
            elif how == 3:
                assert plain.read(start, length) == model[start:start + length]
            memory = aligned(length=length)
            assert os.preadv(direct, [memory], start) == length
            assert memory[:] == model[start:start + length]
    os.close(fd)
    os.close(direct)


@pytest.mark.parametrize("engine", ["libaio", "io_uring", "psync"])
@pytest.mark.parametrize("size", ["4k", "64k"])
def test_fio_verifies(folder, engine, size):
    """fio writes a file with DAX pages at random, many requests at a time, and verifies it by direct
    reads."""
    fd, direct = mixed(folder, 4096, (64, 512))
    os.close(direct)
    done = subprocess.run(["fio", "--name=f", f"--filename={folder}/f", "--size=16m", f"--bs={size}", "--rw=randwrite", "--direct=1",
                           "--invalidate=0", f"--ioengine={engine}", "--iodepth=16", "--verify=crc32c", "--do_verify=1", "--verify_fatal=1",
                           "--end_fsync=1"], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert pages(fd) >= 512
    os.close(fd)


def test_privileges_go(folder, below):
    """Two threads write directly to a file with set-user-ID and set-group-ID bits, over DAX and other pages: a write that has to
    take the bits away does it alone in the file. No bit is left, above or below, and neither thread hangs."""
    fd, direct = mixed(folder)
    os.close(direct)
    folder.chmod(0o755)
    path = folder / "f"
    os.chown(path, NOBODY, NOBODY)
    python_as(NOBODY, SET_AND_WRITE, path, check=True, timeout=120)
    assert os.stat(path).st_mode & 0o7777 == os.stat(below / "f").st_mode & 0o7777 == 0o755
    os.chmod(path, 0o4755)
    python_as(NOBODY, SET_AND_WRITE.replace("os.fchmod(fd, 0o6755)", "pass"), path, check=True, timeout=120)
    assert os.stat(path).st_mode & 0o7777 == os.stat(below / "f").st_mode & 0o7777 == 0o755
    os.close(fd)


def test_privileges_stay_if_it_must_not_block(folder):
    """A write with RWF_NOWAIT that would have to take a set-user-ID bit away fails with EAGAIN, and the bit stays."""
    fd, direct = mixed(folder)
    os.close(direct)
    folder.chmod(0o755)
    path = folder / "f"
    os.chown(path, NOBODY, NOBODY)
    os.chmod(path, 0o4755)
    done = python_as(NOBODY, NOWAIT, path, timeout=60)
    assert done.returncode == 11 and os.stat(path).st_mode & 0o7777 == 0o4755
    os.close(fd)


def delay(milliseconds):
    """Of each request of the SSD below."""
    target = f"delay {SSD} 0 {milliseconds}" if milliseconds else f"linear {SSD} 0"
    run(f"dmsetup load slow --table '0 {SECTORS} {target}' && dmsetup suspend --nolockfs slow && dmsetup resume slow")


@pytest.fixture(name="delayed")
def delayed_fixture():
    """forebay over an SSD that can be made slow."""
    clean_up()
    run(f"dmsetup create slow --table '0 {SECTORS} linear {SSD} 0' && dmsetup mknodes")
    with destroyed_afterwards(Stack(device="/dev/mapper/slow", mib=256).make()) as stack:
        yield stack
        delay(0)


def test_asynchronous_outside(delayed):
    """Requests that meet no DAX page stay asynchronous, even if the file has DAX pages: they complete
    long after they were submitted. The SSD takes longer than the processor, however slow that is."""
    del delayed
    fd, direct = mixed(MOUNT, 4096, (0, 64))
    os.close(direct)
    delay(SLOW)
    for rw in ("read", "write"):
        report = run(f"fio --name=f --filename={MOUNT}/f --offset=1m --size=15m --bs=4k --rw=rand{rw} --direct=1 --ioengine=libaio "
                     "--invalidate=0 --iodepth=16 --time_based --runtime=2 --output-format=json")
        [job] = json.loads(report[report.index("{"):])["jobs"]
        assert job[rw]["slat_ns"]["mean"] < SLOW * 10 ** 6 / 2 < job[rw]["clat_ns"]["mean"]
    assert pages(fd) == 64
    os.close(fd)


@pytest.fixture(name="hasty")
def hasty_fixture():
    """The kernel writes a page back as soon as it is dirty."""
    settings = [Path("/proc/sys/vm") / f"dirty_{name}_centisecs" for name in ("writeback", "expire")]
    before = [setting.read_text(encoding="ascii") for setting in settings]
    for setting in settings:
        setting.write_text("1", encoding="ascii")
    yield
    for setting, value in zip(settings, before):
        setting.write_text(value, encoding="ascii")


def test_reads_that_would_wait(hasty):
    """Direct reads by io_uring over many extents, beside allocation in the same file: xfs ends a read with EAGAIN if the inode's
    lock is taken between two extents of it. On xfs alone fio soon fails."""
    del hasty
    clean_up()
    with destroyed_afterwards(Stack(fs="xfs").make()):
        fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
        for page in range(0, 2048, 2):
            os.pwrite(fd, bytes([1]) * PAGE, page * PAGE)
        os.fsync(fd)
        os.ftruncate(fd, 400 << 20)
        run(f"forebay drain {MOUNT}")
        with subprocess.Popen([sys.executable, "-c", STORE, MOUNT / "f"]) as writer:
            said = run(f"fio --name=f --filename={MOUNT}/f --size=8m --bs=64k --rw=randread --direct=1 --invalidate=0 --ioengine=io_uring "
                       "--iodepth=8 --time_based --runtime=15", check=False)
            writer.kill()
        os.close(fd)
    assert "err= 0" in said, said

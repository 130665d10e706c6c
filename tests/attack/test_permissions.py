# SPDX-License-Identifier: GPL-2.0-only
"""A user with read permission, uid 1234, neither learns of nor moves another user's pages."""

import errno
import fcntl
import os
import resource
import signal
import statistics
import struct
import time

import pytest
from clock import BY_THE_CLOCK
from libc import (IOC_ATTACH, IOC_DETACH, IOC_DROP, IOC_INFO, IOC_PIN, IOC_UNPIN, LOCKED, MAP_SHARED_VALIDATE,
                  MAP_SYNC, MAPPED, PROT_READ, Mapping, drop, error_of, info, on_range, pages)
from other_user import as_user, begin, value_of
from stack import MOUNT, PAGE

STRANGER, OWNER = 1234, 1235
CALLS = {
    IOC_INFO: struct.pack("IIQQII6Q", 80, 0, 0, 0, 0, 0, *[0] * 6),
    IOC_PIN: struct.pack("IIQQ", 24, 0, 0, 0),
    IOC_UNPIN: struct.pack("IIQQ", 24, 0, 0, 0),
    IOC_DROP: struct.pack("IIQQQQQ", 48, 0, 0, 0, 0, 0, 0),
}


def errors(fd):
    """The errno of each call."""
    found = []
    for command, argument in CALLS.items():
        try:
            fcntl.ioctl(fd, command, argument)
            found.append(0)
        except OSError as error:
            found.append(error.errno)
    return found


@pytest.fixture(name="path")
def path_fixture(folder):
    """A file of OWNER's that others may read; 8 of its 16 pages are in PMem, clean."""
    path = folder / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.fchown(fd, OWNER, OWNER)
    os.pwrite(fd, b"a" * 16 * PAGE, 0)
    os.fsync(fd)
    drop(fd)
    on_range(fd, IOC_PIN, 0, 8 * PAGE)
    on_range(fd, IOC_UNPIN)
    os.close(fd)
    assert pages_of(path) == 8
    return path


def pages_of(path):
    """The number of the file's pages in PMem."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return pages(fd)
    finally:
        os.close(fd)


def test_calls(path):
    """A user with read permission alone learns nothing, and moves nothing."""
    assert as_user(STRANGER, lambda: errors(os.open(path, os.O_RDONLY))) == [errno.EPERM] * len(CALLS)
    assert pages_of(path) == 8


def test_who_may(path):
    """Calls work for the owner, with write permission, with a given writable descriptor, and for root."""
    none = [0] * len(CALLS)
    assert as_user(OWNER, lambda: errors(os.open(path, os.O_RDONLY))) == none
    given = os.open(path, os.O_RDWR)
    assert as_user(STRANGER, lambda: errors(given)) == none
    os.close(given)
    os.chmod(path, 0o666)
    assert as_user(STRANGER, lambda: errors(os.open(path, os.O_RDONLY))) == none
    os.chmod(path, 0o444)
    given = os.open(path, os.O_RDONLY)
    assert errors(given) == none
    os.close(given)


def test_fadvise(path):
    """The call succeeds for every user, as below. Pages leave PMem only if the user may write the file."""
    def advise():
        os.posix_fadvise(os.open(path, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
        return "advised"
    assert as_user(STRANGER, advise) == "advised"
    assert pages_of(path) == 8
    assert as_user(OWNER, advise) == "advised"
    assert pages_of(path) == 0


def test_mapping(path):
    """A stranger's MAP_SYNC mapping shows the file. It brings no page to PMem, and pins none."""
    ready, go = os.pipe(), os.pipe()

    def look():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
        fd = os.open(path, os.O_RDONLY)
        with Mapping(fd, 16 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC, PROT_READ) as mapping:
            before = mapping.read(0, 16 * PAGE)
            mapping.lock()
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            return [before == b"a" * 16 * PAGE, mapping.read(0, 16 * PAGE) == b"b" * 16 * PAGE]
    fd = os.open(path, os.O_RDWR)
    begun = begin(STRANGER, look)
    os.read(ready[0], 1)
    now = info(fd)
    os.pwrite(fd, b"b" * 16 * PAGE, 0)
    after = info(fd)
    os.write(go[1], b"x")
    assert value_of(*begun) == [True, True]
    os.close(fd)
    for seen in (now, after):
        assert seen.clean + seen.out_of_sync == 8 and seen.pinned == 0
        assert not seen.attributes & (MAPPED | LOCKED)


def test_owners_mapping(path):
    """The owner's mapping brings the pages to PMem, even if it and its descriptor are read-only."""
    def look():
        fd = os.open(path, os.O_RDONLY)
        with Mapping(fd, 16 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC, PROT_READ) as mapping:
            same = mapping.read(0, 16 * PAGE) == b"a" * 16 * PAGE
            return [same, pages(fd), info(fd).attributes]
    assert as_user(OWNER, look) == [True, 16, MAPPED]


def usual_claim(fd, beside):
    """How long, as a median in seconds, it takes to attach a range and undo that while a child does something."""
    pid, reading = begin(OWNER, beside)
    took = []
    for _ in range(51):
        time.sleep(0.01)        # else the child never has the lock
        start = time.monotonic()
        on_range(fd, IOC_ATTACH, 1 << 40, PAGE)
        on_range(fd, IOC_DETACH)
        took.append(time.monotonic() - start)
    assert os.waitpid(pid, os.WNOHANG) == (0, 0), "it goes on"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reading)
    return statistics.median(took)


def busy():
    """Takes as much of the processor as a loop of INFO, and no lock."""
    while True:
        pass


@BY_THE_CLOCK
def test_looking_holds_nothing_up(folder, shared):
    """INFO of a file with 98,304 pages in memory, in a loop: a change waits for no whole walk.

    If a walk held the lock from end to end, an attach and its undoing would wait for one walk and a half.
    The remaining wait doesn't depend on the walk's length: readers of an rwsem go before a waiting writer
    for up to 4 ms and a tick, at each of the locks (RWSEM_WAIT_TIMEOUT in the kernel).
    """
    del shared
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.fchown(fd, OWNER, OWNER)
    for mib in range(384):
        os.pwrite(fd, b"a" * (1 << 20), mib << 20)
    os.fsync(fd)
    start = time.monotonic()
    seen = info(fd)
    walk = time.monotonic() - start
    assert seen.volatile > 90000

    def look():
        while True:
            info(fd)
    # The best pair of medians, measured in turns, counts: other machines share the processors.
    rounds = [(usual_claim(fd, look), usual_claim(fd, busy)) for _ in range(3)]
    print(f"a walk {walk * 1000:.2f} ms; a change beside walks, beside a loop, in ms:",
          *(f"{mine * 1000:.2f} {its * 1000:.2f}" for mine, its in rounds))
    os.close(fd)
    os.unlink(folder / "f")
    assert min(mine - its for mine, its in rounds) < max(walk / 2, 0.03)


def read_beside_giving_up(folder, fd, how):
    """The longest read of @fd while another process gives up 60,000 attached ranges, and how long that takes."""
    claims = os.open(folder / "f", os.O_RDWR)
    for n in range(60000):
        on_range(claims, IOC_ATTACH, (1000 + 2 * n) * PAGE, PAGE)

    def give_up():
        os.close(fd)
        time.sleep(0.2)
        start = time.monotonic()
        if how == "detach":
            on_range(claims, IOC_DETACH)
        os.close(claims)
        return time.monotonic() - start
    begun = begin(0, give_up)
    os.close(claims)
    worst, end = 0.0, time.monotonic() + 1.5
    while time.monotonic() < end:
        start = time.monotonic()
        os.pread(fd, 1, 0)
        worst = max(worst, time.monotonic() - start)
    return worst, value_of(*begun)


@pytest.mark.parametrize("how", ["detach", "close"])
def test_giving_up_holds_nothing_up(folder, how):
    """One call or close ends 60,000 attached ranges of a descriptor. A read doesn't wait for all. The best of some rounds counts,
    as a busy host holds each read up for a while."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"a" * PAGE, 0)
    on_range(fd, IOC_PIN)       # a read of a page in PMem waits for tasks that move pages
    for _ in range(8):
        worst, whole = read_beside_giving_up(folder, fd, how)
        print(f"{whole * 1000:.0f} ms, the longest read {worst * 1000:.0f} ms")
        if worst < 0.01 + whole / 4:
            break
    else:
        pytest.fail("each time a read waited for all of it")
    os.close(fd)


@pytest.mark.parametrize("stack", [{"fs": "f2fs"}], indirect=True)
def test_system_attributes_are_the_owners(stack):
    """Attributes of the system class, which the VFS leaves to the file system: f2fs lets the owner alone set its own."""
    del stack
    path = MOUNT / "f"
    path.write_bytes(b"x")
    os.chown(path, OWNER, OWNER)
    os.chmod(path, 0o666)
    assert as_user(STRANGER, lambda: error_of(os.setxattr, path, "system.advise", b"\1")) == errno.EPERM
    assert as_user(OWNER, lambda: error_of(os.setxattr, path, "system.advise", b"\1")) == 0

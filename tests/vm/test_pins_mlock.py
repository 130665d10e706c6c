# SPDX-License-Identifier: GPL-2.0-only
"""Pages of a DAX mapping that mlock() pins: limited likewise, and counted for the user that locks them."""

import ctypes
import errno
import os
import signal

import pytest
from libc import IOC_PIN, LOCKED, MAP_SHARED, PROT_READ, Mapping, drop, info, on_range, pages, process_vm_readv
from other_user import NOBODY, SOMEBODY, as_nobody
from pins import DAX, locks_in_a_child, make, thrash
from stack import MOUNT, PAGE, run


def test_lock(small):
    """mlock() pins the pages of the mapping, also if they were in PMem before; munlock() ends the pin."""
    fd = make("f", 128)
    for touch in (True, False):
        dax = Mapping(fd, 128 * PAGE, DAX)
        if touch:
            dax.read(0, 128 * PAGE)
        dax.lock(0, 64 * PAGE)
        assert info(fd, 0, 64 * PAGE).attributes & LOCKED and not info(fd, 64 * PAGE).attributes & LOCKED
        thrash(small.value("pages_total") * 2)
        assert pages(fd, 0, 64 * PAGE) == 64
        assert drop(fd)[1] == 64
        dax.unlock(32 * PAGE, 32 * PAGE)
        assert info(fd).pinned == 32 == small.value("pages_pinned")
        dax.unmap(0, 16 * PAGE)
        assert info(fd).pinned == 16
        dax.unmap(16 * PAGE, 112 * PAGE)
        assert info(fd).pinned == 0 and small.value("pages_pinned") == 0
        drop(fd)
        assert pages(fd) == 0
    os.close(fd)


def test_lock_limits(small):
    """ENOMEM from mlock() itself, nothing pinned; RLIMIT_MEMLOCK is asked besides."""
    os.close(make("f", 600))

    def locks():
        import resource  # pylint: disable=import-outside-toplevel
        mine = os.open(MOUNT / "f", os.O_RDWR)
        first, second = Mapping(mine, 600 * PAGE, DAX), Mapping(mine, 600 * PAGE, DAX)
        first.lock(0, 200 * PAGE)
        try:
            second.lock(300 * PAGE, 100 * PAGE)
            return 1
        except OSError as problem:
            if problem.errno != errno.ENOMEM:
                return 2
        if info(mine).pinned != 200:
            return 3
        first.unlock(0, 200 * PAGE)
        second.unlock(0, 600 * PAGE)
        second.lock(300 * PAGE, 250 * PAGE)     # what was given up is noticed when the limit is hit
        if info(mine).pinned != 250:
            return 4
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 * PAGE, 64 * PAGE))
        second.unlock(0, 600 * PAGE)
        try:
            first.lock(0, 65 * PAGE)
            return 5
        except OSError as problem:
            if problem.errno != errno.ENOMEM:
                return 6
        first.lock(0, 64 * PAGE)
        return 0

    run("prlimit --memlock=67108864:67108864 --pid $PPID")
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 20, 64 << 20))
    assert as_nobody(locks) == 0
    fd = os.open(MOUNT / "f", os.O_RDONLY)
    assert info(fd).pinned == 0 and small.value("pages_pinned") == 0
    os.close(fd)


@pytest.mark.usefixtures("small")
def test_locked_in_vain_and_read():
    """mlock() has failed, but its mapping counts as locked. A debugger, or process_vm_readv(), reads what isn't pinned."""
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 20, 64 << 20))
    fd = make("f", 400)
    data = os.pread(fd, PAGE, 399 * PAGE)
    os.close(fd)

    def locks():
        dax = Mapping(os.open(MOUNT / "f", os.O_RDWR), 400 * PAGE, DAX)
        try:
            dax.lock()
            return 1
        except OSError as problem:
            if problem.errno != errno.ENOMEM:
                return 2
        return 0 if process_vm_readv(dax.address + 399 * PAGE, PAGE) == data else 3

    assert as_nobody(locks) == 0


def test_lock_noticed_by_root(small):
    """A lock of pages that were in PMem before counts against its owner's limit. It counts so even if
    root's drop, or the kernel, notices it."""
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 20, 64 << 20))
    fd = make("f", 400)

    def lock():
        dax = Mapping(os.open(MOUNT / "f", os.O_RDWR), 400 * PAGE, DAX)
        dax.read(0, 400 * PAGE)
        dax.lock()

    pid = locks_in_a_child(NOBODY, lock)
    assert drop(fd) == (144, 256, 0) and small.value("pages_pinned") == 256 == small.value("pin_limit_user")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert info(fd).pinned == 0 and small.value("pages_pinned") == 0
    os.close(fd)


def test_two_lock_a_page(small):
    """Two users lock the same page and one of them has no pin left: the page stays for the other."""
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 20, 64 << 20))
    fd = make("f", 16)
    os.close(make("g", 256))

    def lock(first):
        dax = Mapping(os.open(MOUNT / "f", os.O_RDWR), (16 - first) * PAGE, DAX, offset=first * PAGE)
        dax.read(0, (16 - first) * PAGE)
        dax.lock()

    def lock_all():
        on_range(os.open(MOUNT / "g", os.O_RDWR), IOC_PIN)
        lock(0)

    assert small.value("pin_limit_user") == 256
    children = [locks_in_a_child(SOMEBODY, lock_all), locks_in_a_child(NOBODY, lambda: lock(8))]
    assert drop(fd) == (8, 8, 0) and pages(fd, 8 * PAGE, 8 * PAGE) == 8
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert drop(fd) == (8, 0, 0) and small.value("pages_pinned") == 0
    os.close(fd)


def test_lock_without_a_page(small):
    """An immutable file has no page in PMem. Its locks count as long as they exist, and no longer."""
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 20, 64 << 20))
    os.close(make("f", 200))
    os.close(make("g", 200))
    os.chown(MOUNT / "f", NOBODY, -1)
    run(f"chattr +i {MOUNT}/f")

    def locks():
        mine, other = os.open(MOUNT / "f", os.O_RDONLY), os.open(MOUNT / "g", os.O_RDWR)
        with Mapping(mine, 200 * PAGE, DAX, PROT_READ) as dax:
            dax.lock()
            if pages(mine) or dax.read(7 * PAGE, 8) != b"%08d" % 7:
                return 1
        os.close(mine)
        on_range(other, IOC_PIN)
        return info(other).pinned

    assert as_nobody(locks) == 200
    run(f"chattr -i {MOUNT}/f")
    assert small.value("files_used") == 1, "g's"


def test_locked_beyond_the_limit_as_a_buffer(small):
    """Pages that are locked but may not be pinned can still be the buffer of a direct read."""
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 20, 64 << 20))
    os.close(make("f", 400))
    os.close(make("g", 6))

    def reads():
        mine, source = os.open(MOUNT / "f", os.O_RDWR), os.open(MOUNT / "g", os.O_RDONLY | os.O_DIRECT)
        dax = Mapping(mine, 400 * PAGE, DAX)
        dax.read(0, 400 * PAGE)
        dax.lock()
        if drop(mine) != (144, 256, 0):
            return 1
        buffer = (ctypes.c_char * PAGE).from_address(dax.address + 300 * PAGE)
        if os.preadv(source, [buffer], 5 * PAGE) != PAGE or dax.read(300 * PAGE, 8) != b"%08d" % 5:
            return 2
        return 0

    assert small.value("pin_limit_user") == 256 and as_nobody(reads) == 0


def test_lock_parts_and_fork(small):
    """Locked in parts, a part unlocked, moved, forked (a child inherits no lock)."""
    fd = make("f", 64)
    dax = Mapping(fd, 64 * PAGE, DAX)
    dax.lock(8 * PAGE, 8 * PAGE)
    dax.lock(12 * PAGE, 20 * PAGE)
    assert info(fd).pinned == 24
    dax.unlock(16 * PAGE, 4 * PAGE)
    assert info(fd).pinned == 20
    pid = os.fork()
    if not pid:
        signal.pause()
    dax.unlock(0, 64 * PAGE)
    assert info(fd).pinned == 0, "the child's mapping is not locked"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    dax.lock(0, 64 * PAGE)
    dax.unmap(32 * PAGE, 32 * PAGE)
    dax.length = 32 * PAGE
    dax.remap(16 * PAGE)
    assert info(fd).pinned == 16
    dax.remap(48 * PAGE)
    assert info(fd).pinned == 48, "what a locked mapping grows by is locked"
    dax.close()
    assert info(fd).pinned == 0
    os.close(fd)


def test_mixed_with_a_plain_mapping(small):
    """mlock() on a plain mapping locks memory and pins nothing, even where a DAX mapping of the same
    pages exists."""
    fd = make("f", 32)
    with Mapping(fd, 32 * PAGE, MAP_SHARED) as plain, Mapping(fd, 16 * PAGE, DAX) as dax:
        plain.lock()
        assert info(fd).pinned == 0 and small.value("pages_pinned") == 0
        dax.lock()
        assert info(fd).pinned == 16
        plain.unlock()
        assert info(fd).pinned == 16
    os.close(fd)

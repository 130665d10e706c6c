# SPDX-License-Identifier: GPL-2.0-only
"""Pinned and locked pages: resident, never reclaimed, limited by user and by mount, all or nothing."""

import ctypes
import errno
import os
import pwd
import signal
import time

import pytest
from libc import (ATTACHED, COLLAPSE_RANGE, IOC_ATTACH, IOC_DETACH, IOC_PIN, IOC_UNPIN, KEEP, KEEP_SIZE, LOCKED, MAP_SHARED,
                  MAP_SHARED_VALIDATE, MAP_SYNC, MAPPED, PINNED, PROT_READ, PUNCH_HOLE, RUN, Mapping, drop, fallocate, info,
                  on_range, pages)
from stack import MOUNT, PAGE, run, small_cache

DAX = MAP_SHARED_VALIDATE | MAP_SYNC
NOBODY, SOMEBODY = pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("daemon").pw_uid


def make(name, count, mode=0o666):
    """Makes a settled file of so many pages."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
    for start in range(0, count, 256):
        os.pwrite(fd, b"".join(b"%08d" % p * (PAGE // 8) for p in range(start, min(count, start + 256))), start * PAGE)
    os.fchmod(fd, mode)
    os.fsync(fd)
    return fd


def thrash(count, rounds=1):
    """Stores and syncs so many pages of another file."""
    fd = os.open(MOUNT / "thrash", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, count * PAGE)
    os.fsync(fd)
    for _ in range(rounds):
        for start in range(0, count, 32):
            for page in range(start, min(start + 32, count)):
                os.pwrite(fd, b"t", page * PAGE)
            os.fdatasync(fd)
    os.close(fd)


def as_nobody(action, uid=NOBODY):
    """Runs an action in a child without capabilities; returns its result, or its errno negative."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        answer = -999
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            answer = action() or 0
        except OSError as problem:
            answer = -problem.errno
        finally:
            os.write(writer, b"%d" % answer)
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    answer = int(os.read(reader, 20))
    os.close(reader)
    return answer


def locks_in_a_child(uid, action):
    """Forks a child of that user that carries out an action and then waits. Returns the child's process
    number once the action is done."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setresuid(uid, uid, uid)
            action()
            os.write(writer, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    return pid


def failure(action, *arguments, **more):
    """The errno of an action that must fail."""
    with pytest.raises(OSError) as caught:
        action(*arguments, **more)
    return caught.value.errno


@pytest.fixture(name="small")
def small_fixture():
    """A cache of 8 MiB with limits of 2 MiB for all and 1 MiB for a user."""
    from conftest import clean_up  # pylint: disable=import-outside-toplevel
    from stack import Stack  # pylint: disable=import-outside-toplevel
    clean_up()
    stack = Stack(cache=small_cache(8)).make()
    run(f"mount -o remount,pin_limit=2M,pin_limit_user=1M {MOUNT}; chmod 777 {MOUNT}")
    yield stack
    os.chdir("/")
    try:
        stack.destroy()
    finally:
        clean_up()


def test_resident(small):
    """A pin brings in all pages of the range, also those of holes. They stay whatever other files do;
    after the unpin they can go."""
    fd = make("f", 100)
    os.ftruncate(fd, 110 * PAGE)
    os.fsync(fd)
    on_range(fd, IOC_PIN, 10 * PAGE + 5, 99 * PAGE + 7)     # touches pages 10 to 109
    assert pages(fd) == 100 and info(fd).pinned == 100
    assert info(fd, 10 * PAGE, 100 * PAGE).attributes == PINNED and info(fd, 0, 10 * PAGE).attributes == 0
    assert small.value("pages_pinned") == 100
    os.pwrite(fd, b"out-of-sync", 20 * PAGE)
    thrash(small.value("pages_total") * 2)
    assert small.value("pages_reclaimed") > 0
    assert pages(fd) == 100
    on_range(fd, IOC_UNPIN)
    assert small.value("pages_pinned") == 0 and info(fd).pinned == 0
    thrash(small.value("pages_total") * 2, 2)
    assert pages(fd) < 100
    assert os.pread(fd, 11, 20 * PAGE) == b"out-of-sync"
    os.close(fd)


def test_clean_pages_enter_clean(small):
    """What the lower file has durably needs no writing back."""
    fd = make("f", 64)
    written = small.value("pages_written_back")
    on_range(fd, IOC_PIN)
    assert info(fd)[4:6] == (64, 0)
    on_range(fd, IOC_UNPIN)
    assert drop(fd) == (64, 0, 0)
    assert small.value("pages_written_back") == written
    os.close(fd)


def test_overlapping_pins(small):
    """Each descriptor has one set of pinned pages: a page pinned twice by it is pinned once. Pins of two
    descriptors are independent, and both are charged."""
    fd = make("f", 64)
    other = os.open(MOUNT / "f", os.O_RDONLY)
    on_range(fd, IOC_PIN, 0, 20 * PAGE)
    on_range(fd, IOC_PIN, 10 * PAGE, 20 * PAGE)
    assert small.value("pages_pinned") == 30
    on_range(other, IOC_PIN, 25 * PAGE, 10 * PAGE)
    assert small.value("pages_pinned") == 40 and info(fd).pinned == 35
    on_range(fd, IOC_UNPIN, 5 * PAGE, 22 * PAGE)
    assert small.value("pages_pinned") == 18 and info(fd).pinned == 5 + 10
    assert info(fd, 26 * PAGE, PAGE).attributes == PINNED
    on_range(fd, IOC_UNPIN)
    assert info(fd).pinned == 10
    os.close(other)
    assert info(fd).pinned == 0 and small.value("pages_pinned") == 0
    os.close(fd)


def test_goes_with_the_last_opener(small):
    """A pin belongs to the open file description: descriptors made by dup and fork share it."""
    fd = make("f", 16)
    opener = os.open(MOUNT / "f", os.O_RDONLY)
    on_range(opener, IOC_PIN)
    double = os.dup(opener)
    pid = os.fork()
    if not pid:
        signal.pause()
    os.close(opener)
    os.close(double)
    assert info(fd).pinned == 16
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert info(fd).pinned == 0 and small.value("pages_pinned") == 0
    os.close(fd)


def test_outlived_by_a_mapping(small):
    """A pin and an attached range end with the close, although a mapping made of the descriptor stays."""
    fd = make("f", 16)
    opener = os.open(MOUNT / "f", os.O_RDWR)
    on_range(opener, IOC_PIN)
    on_range(opener, IOC_ATTACH)
    with Mapping(opener, 16 * PAGE, DAX) as dax:
        os.close(opener)
        assert info(fd).attributes == MAPPED and small.value("pages_pinned") == 0
        dax.write(0, b"stays")
    os.close(fd)


def test_kept(small):
    """The administrator's kept pins stay with the file. Only an unpin of the same kind, unlink or
    unmount ends them."""
    fd = make("f", 16)
    on_range(fd, IOC_PIN, 0, 0, KEEP)
    os.close(fd)
    run("echo 3 >/proc/sys/vm/drop_caches")
    assert small.value("pages_pinned") == 16
    fd = os.open(MOUNT / "f", os.O_RDWR)
    on_range(fd, IOC_UNPIN)
    assert info(fd).pinned == 16
    assert as_nobody(lambda: on_range(fd, IOC_UNPIN, 0, 0, KEEP)) == -errno.EPERM
    assert as_nobody(lambda: on_range(fd, IOC_PIN, 0, 0, KEEP)) == -errno.EPERM
    on_range(fd, IOC_UNPIN, 0, 8 * PAGE, KEEP)
    assert info(fd).pinned == 8
    os.unlink(MOUNT / "f")
    assert small.value("pages_pinned") == 0
    os.close(fd)
    fd = make("g", 16)
    on_range(fd, IOC_PIN, 0, 0, KEEP)
    os.close(fd)
    small.umount()
    small.mount()
    assert small.value("pages_pinned") == 0


def test_kept_and_cut(small):
    """A file truncated to nothing has no pages to keep: it can be unmounted, and goes when it is
    deleted."""
    fd = make("f", 16)
    on_range(fd, IOC_PIN, 0, 0, KEEP)
    os.ftruncate(fd, 0)
    os.close(fd)
    assert small.value("pages_pinned") == 0
    small.umount()
    small.mount()


def test_mount_limit(small):
    """Over it: ENOMEM, nothing pinned, nothing charged, even for root; what was pinned stays."""
    fd = make("f", 600)
    on_range(fd, IOC_PIN, 0, 100 * PAGE)
    assert failure(on_range, fd, IOC_PIN, 50 * PAGE, 500 * PAGE) == errno.ENOMEM
    assert small.value("pages_pinned") == 100 and info(fd).pinned == 100
    on_range(fd, IOC_PIN, 50 * PAGE, 462 * PAGE)
    assert small.value("pages_pinned") == 512 == small.value("pin_limit")
    assert failure(on_range, fd, IOC_PIN, 512 * PAGE, 1) == errno.ENOMEM
    on_range(fd, IOC_PIN, 0, 512 * PAGE)
    run(f"mount -o remount,pin_limit=1M {MOUNT}")
    assert small.value("pages_pinned") == 512, "a lower limit is for new pins"
    os.close(fd)


def test_user_limit(small):
    """For users without CAP_IPC_LOCK, over all their files."""
    fd, other = make("f", 300), make("g", 300)

    def pins():
        mine, second = (os.open(MOUNT / n, os.O_RDWR) for n in "fg")
        on_range(mine, IOC_PIN, 0, 200 * PAGE)
        try:
            on_range(second, IOC_PIN, 0, 57 * PAGE)
            return 1
        except OSError as problem:
            if problem.errno != errno.ENOMEM:
                return 2
        on_range(second, IOC_PIN, 0, 56 * PAGE)
        os.close(mine)
        on_range(second, IOC_PIN, 0, 256 * PAGE)
        return 0

    assert as_nobody(pins) == 0
    assert small.value("pages_pinned") == 0
    on_range(fd, IOC_PIN, 0, 300 * PAGE)
    os.close(fd)
    os.close(other)


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


def test_many_claims(small):
    """Thousands of descriptors attach the same pages, and one attaches every other page. No call takes
    seconds."""
    import resource  # pylint: disable=import-outside-toplevel
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    fd = make("f", 1000)
    on_range(fd, IOC_PIN, 0, 500 * PAGE)
    begun = time.monotonic()
    openers = [os.open(MOUNT / "f", os.O_RDWR) for _ in range(2000)]
    for number, opener in enumerate(openers):
        on_range(opener, IOC_ATTACH, number // 5 * PAGE, 0)
    for page in range(0, 1000, 2):
        on_range(fd, IOC_ATTACH, page * PAGE, PAGE)
    assert info(fd).attributes == ATTACHED | PINNED and pages(fd) == 1000
    first = info(fd, 0, 0, RUN)
    assert first.attributes == ATTACHED | PINNED and first.length == 500 * PAGE
    for opener in openers:
        os.close(opener)
    on_range(fd, IOC_UNPIN, 250 * PAGE, 0)
    assert info(fd, 249 * PAGE, PAGE).attributes == PINNED and info(fd, 250 * PAGE, PAGE).attributes == ATTACHED
    on_range(fd, IOC_ATTACH)
    on_range(fd, IOC_DETACH, PAGE, 998 * PAGE)
    assert info(fd, 0, PAGE).attributes == ATTACHED | PINNED and info(fd, PAGE, 998 * PAGE).attributes == PINNED
    assert info(fd, 999 * PAGE, PAGE).attributes == ATTACHED and info(fd).pinned == 250
    assert time.monotonic() - begun < 30
    os.close(fd)


def test_truncation(small):
    """Pages that are truncated aren't pinned any more, even if the file grows again. A punched hole
    empties the range, which stays pinned."""
    fd = make("f", 64)
    on_range(fd, IOC_PIN)
    os.ftruncate(fd, 32 * PAGE + 1)
    assert small.value("pages_pinned") == 33 and info(fd).pinned == 33
    os.ftruncate(fd, 64 * PAGE)
    assert info(fd).pinned == 33 and not info(fd, 33 * PAGE).attributes
    fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 0, 4 * PAGE)
    assert info(fd).pinned == 29 and small.value("pages_pinned") == 33
    os.pwrite(fd, b"back", PAGE)
    assert info(fd).pinned == 30
    os.close(fd)
    dax_fd = make("g", 64)
    with Mapping(dax_fd, 64 * PAGE, DAX) as dax:
        dax.lock()
        os.ftruncate(dax_fd, 16 * PAGE)
        assert info(dax_fd).pinned == 16
    os.close(dax_fd)


def test_collapsed_range(small):
    """Collapsing makes the file shorter, and likewise what is pinned and locked of it; whatever the file
    becomes later."""
    fd = make("f", 64)
    kept = os.open(MOUNT / "f", os.O_RDONLY)
    on_range(kept, IOC_PIN, 0, 0, KEEP)
    with Mapping(fd, 64 * PAGE, DAX) as dax:
        dax.lock()
        assert small.value("pages_pinned") == 128
        fallocate(fd, COLLAPSE_RANGE, 8 * PAGE, 16 * PAGE)
        assert small.value("pages_pinned") == 96
        os.ftruncate(fd, 64 * PAGE)
        assert info(fd, 48 * PAGE).attributes & PINNED == 0 and info(fd, 0, 48 * PAGE).attributes & PINNED
    assert os.pread(fd, 8, 8 * PAGE) == b"%08d" % 24
    on_range(fd, IOC_UNPIN, 0, 0, KEEP)
    assert info(fd).pinned == 0 == small.value("pages_pinned")
    os.close(kept)
    os.close(fd)


def test_pin_waits_for_space(small):
    """A cache is full of out-of-sync pages of other files: they are written back, and the pin succeeds."""
    fd = make("f", 400)
    thrash(small.value("pages_total") - 100)
    on_range(fd, IOC_PIN)
    assert pages(fd) == 400
    for page in range(0, 400, 13):
        assert os.pread(fd, 8, page * PAGE) == b"%08d" % page
    os.close(fd)


def test_killed_while_waiting(small):
    """Everything is pinned, and a fault waits for space. The wait ends when the task is killed, or when
    there is space."""
    total = small.value("pages_total")
    run(f"mount -o remount,pin_limit={4 * total}k {MOUNT}")
    hog, fd = make("hog", total), make("f", 16)
    on_range(hog, IOC_PIN)
    assert small.value("pages_free") == 0
    children = []
    for _ in range(2):
        pid = os.fork()
        if not pid:
            try:
                Mapping(fd, 16 * PAGE, DAX).write(3 * PAGE, b"child")
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    time.sleep(2)
    assert os.waitpid(children[0], os.WNOHANG) == (0, 0), "it waits"
    os.kill(children[0], signal.SIGKILL)
    for _ in range(100):
        if os.waitpid(children[0], os.WNOHANG)[0]:
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the task can't be killed")
    on_range(hog, IOC_UNPIN, 0, 8 * PAGE)
    assert os.waitpid(children[1], 0)[1] == 0
    assert os.pread(fd, 5, 3 * PAGE) == b"child" and pages(hog) >= total - 8
    os.close(hog)
    os.close(fd)


def test_thrash_makes_progress(small):
    """Two processes use a working set of four times the cache through a DAX mapping, beside a pinned
    file."""
    pinned = make("pinned", 64)
    on_range(pinned, IOC_PIN)
    count = small.value("pages_total") * 4
    fd = os.open(MOUNT / "big", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, count * PAGE)
    os.fsync(fd)
    children = []
    for child in range(2):
        pid = os.fork()
        if not pid:
            dax = Mapping(fd, count * PAGE, DAX)
            for page in range(child, count, 2):
                dax.write(page * PAGE, b"%08d" % page)
            os._exit(0)
        children.append(pid)
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    assert pages(pinned) == 64
    for page in range(0, count, 61):
        assert os.pread(fd, 8, page * PAGE) == b"%08d" % page
    os.close(fd)
    os.close(pinned)

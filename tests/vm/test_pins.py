# SPDX-License-Identifier: GPL-2.0-only
"""Pinned pages: resident, never reclaimed, limited by user and by mount, all or nothing."""

import errno
import os
import signal

from libc import IOC_ATTACH, IOC_PIN, IOC_UNPIN, KEEP, MAPPED, PINNED, Mapping, drop, info, on_range, pages
from other_user import as_nobody
from pins import DAX, failure, make, thrash
from stack import MOUNT, PAGE, run


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
    assert as_nobody(lambda: failure(on_range, fd, IOC_UNPIN, 0, 0, KEEP)) == errno.EPERM
    assert as_nobody(lambda: failure(on_range, fd, IOC_PIN, 0, 0, KEEP)) == errno.EPERM
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


def test_kept_and_truncated(small):
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

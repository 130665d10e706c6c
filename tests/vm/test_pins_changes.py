# SPDX-License-Identifier: GPL-2.0-only
"""Pins of many descriptors, of files that become shorter, and in a cache that is full."""

import os
import signal
import time

from clock import BY_THE_CLOCK
from libc import (ATTACHED, COLLAPSE_RANGE, IOC_ATTACH, IOC_DETACH, IOC_PIN, IOC_UNPIN, KEEP, KEEP_SIZE, PINNED, PUNCH_HOLE, RUN,
                  Mapping, fallocate, info, on_range, pages)
from pins import DAX, make, thrash
from stack import MOUNT, PAGE, run


@BY_THE_CLOCK
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
    for _ in range(600):
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

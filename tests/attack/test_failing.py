# SPDX-License-Identifier: GPL-2.0-only
"""Storage refuses what one file has in PMem: those pages stay there, whoever is told of the error; other files' pages are written."""

import contextlib
import errno
import os
import re
import threading
import time

import pytest
from beside import CACHE_MIB, other_file, store_in_all
from conftest import clean_up
from libc import drop, error_of, pages, syncfs
from stack import LOWER, MOUNT, PAGE, SSD, Stack, run, small_cache

SECTORS = 512 * 2048


@pytest.fixture(name="failing")
def failing_fixture():
    """A small cache, and a device of which a part can be made to fail."""
    clean_up()
    run(f"dmsetup create ssd --table '0 {SECTORS} linear {SSD} 0'; dmsetup mknodes")
    stack = Stack(device="/dev/mapper/ssd", cache=small_cache(CACHE_MIB), mib=256).make()
    yield stack
    os.chdir("/")
    table([])
    clean_up()


def table(extents):
    """Replaces the device's table: these extents, (first, length) in sectors, fail."""
    lines, at = [], 0
    for first, length in [*sorted(extents), (SECTORS, 0)]:
        if first > at:
            lines.append(f"{at} {first - at} linear {SSD} {at}")
        if length:
            lines.append(f"{first} {length} error")
        at = first + length
    text = "\\n".join(lines)
    run(f"dmsetup suspend --noflush --nolockfs ssd; printf '{text}\\n' | dmsetup load ssd; dmsetup resume ssd")


def break_file(name):
    """From now on the storage of a file fails."""
    extents = re.findall(r"^ *\d+: +\d+\.\. *\d+: +(\d+)\.\. *(\d+):", run(f"filefrag -v {LOWER / name}"), re.MULTILINE)
    assert extents
    table([(int(first) * 8, (int(last) - int(first) + 1) * 8) for first, last in extents])


def synced_pages(name, number):
    """Makes a file that is all below, then has pages of it out-of-sync; returns the open descriptor."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"o" * number * PAGE, 0)
    os.fsync(fd)
    run(f"forebay drain {MOUNT}; sync")
    for page in range(number):
        os.pwrite(fd, b"s" * PAGE, page * PAGE)
        os.fdatasync(fd)
    assert pages(fd) == number
    return fd


def truncate_and_sync(end, stop):
    """A task truncates the file, and has that made durable below, again and again."""
    with open(MOUNT / "f", "r+b", buffering=0) as file:
        while not stop.is_set():
            os.pwrite(file.fileno(), b"t" * PAGE, end)
            with contextlib.suppress(OSError):
                os.fdatasync(file.fileno())
            os.ftruncate(file.fileno(), end)
            with contextlib.suppress(OSError):
                syncfs(file.fileno())


def test_error_that_another_fsync_is_told(failing):
    """While a truncation of the file is made durable, too, no page that storage refused counts as written."""
    number = 32
    fd = synced_pages("f", number)
    break_file("f")
    stop = threading.Event()
    other = threading.Thread(target=truncate_and_sync, args=(number * PAGE, stop))
    other.start()
    tries, refused = 0, 0
    try:
        end = time.monotonic() + 20
        while (time.monotonic() < end or tries <= 10) and tries == refused:     # storage may be so slow
            tries += 1
            try:
                os.posix_fadvise(fd, 0, number * PAGE, os.POSIX_FADV_DONTNEED)
            except OSError:
                refused += 1
    finally:
        stop.set()
        other.join()
    print("refused %d times of %d" % (refused, tries))
    assert refused == tries > 10
    assert pages(fd, 0, number * PAGE) == number
    table([])
    failing.drain()
    os.close(fd)
    run("echo 3 > /proc/sys/vm/drop_caches")
    assert (LOWER / "f").read_bytes() == b"s" * number * PAGE


def test_page_that_the_lower_file_system_could_not_write(failing):
    """Storage refuses volatile pages, and the lower file system takes them for clean. A sync call tells of that, and moves them into
    PMem. They are written when storage takes them again."""
    number = 8
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"o" * number * PAGE, 0)
    os.fsync(fd)
    failing.drain()
    drop(fd)
    break_file("f")
    os.pwrite(fd, b"n" * number * PAGE, 0)
    lower = os.open(LOWER, os.O_RDONLY)
    error_of(syncfs, lower)
    os.close(lower)
    assert error_of(os.fsync, fd) == errno.EIO
    assert pages(fd) == number
    table([])
    run(f"forebay drain {MOUNT}", False)    # may tell of the old error
    error_of(os.fsync, fd)
    os.fsync(fd)
    failing.drain()
    os.close(fd)
    failing.umount()
    run("echo 3 > /proc/sys/vm/drop_caches")
    assert (LOWER / "f").read_bytes() == b"n" * number * PAGE


def test_error_stays_beside_success(failing):
    """The status tells of a file that storage refuses, also after another file was written back."""
    broken = synced_pages("f", 32)
    good = os.open(MOUNT / "good", os.O_RDWR | os.O_CREAT)
    break_file("f")
    for byte in (b"1", b"2"):
        os.pwrite(good, byte * PAGE, 0)
        os.fsync(good)
    assert pages(good) == 1
    run(f"forebay drain {MOUNT}", False)
    os.posix_fadvise(good, 0, PAGE, os.POSIX_FADV_DONTNEED)
    assert pages(good) == 0 and pages(broken) == 32
    assert failing.value("last_error") < 0
    table([])
    failing.drain()
    assert failing.value("last_error") == 0
    os.close(good)
    os.close(broken)


def test_other_files_are_written_at_once(failing):
    """A file whose storage fails doesn't make the worker wait before it serves other files. It has more than its share, so the worker
    tries; what it has stays, so that the others have little."""
    number = (CACHE_MIB << 20) // PAGE // 2
    fd = other_file()
    alone = store_in_all(fd)
    drop(fd)
    broken = synced_pages("f", number)
    break_file("f")
    errors = failing.value("writeback_errors")
    took = store_in_all(fd)
    assert failing.value("writeback_errors") > errors
    assert pages(broken) == number
    assert took < 40 + 2 * alone
    os.close(fd)
    table([])
    failing.drain()
    os.close(broken)
    assert (LOWER / "f").read_bytes() == b"s" * number * PAGE

# SPDX-License-Identifier: GPL-2.0-only
"""Mount option writeback_age: data that have been out-of-sync for long go below while storage is idle, and only then."""

import mmap
import os
import threading
import time

import pytest
from clock import BY_THE_CLOCK
from stack import LOWER, MOUNT, PAGE, fails, run

PAGES = 300
PATIENCE = 200
AGE = 2


def write_and_sync(name):
    """Makes a file whose data PMem alone has. Its name is on storage before."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
    os.fsync(fd)
    os.pwrite(fd, b"d" * PAGES * PAGE, 0)
    os.fdatasync(fd)
    return fd


def wait_for(condition, seconds=PATIENCE):
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


@pytest.fixture(name="ageless")
def ageless_fixture(stack):
    """A mount that writes nothing back without need. So a test has all the time that it takes before age() begins it."""
    stack.umount()
    stack.mount("writeback_age=0")
    return stack


def age():
    """From now on the mount writes back what is older than two seconds."""
    run(f"mount -o remount,writeback_age={AGE} {MOUNT}")


def test_option(stack):
    """It is shown, changed by a remount, and checked."""
    def options():
        return [line for line in open("/proc/mounts", encoding="ascii") if f" {MOUNT} " in line][0]
    assert stack.value("writeback_age") == 30 and ",writeback_age=30" in options()
    assert "older than 30 s" in run(f"forebay status {MOUNT}")
    run(f"mount -o remount,writeback_age=7 {MOUNT}")
    assert stack.value("writeback_age") == 7 and ",writeback_age=7" in options()
    run(f"mount -o remount,mode=auto {MOUNT}")
    assert stack.value("writeback_age") == 7
    for wrong in ("-1", "x", "86401"):
        fails(f"mount -o remount,writeback_age={wrong} {MOUNT}")
    assert stack.value("writeback_age") == 7


def test_old_data_go_below(ageless):
    """All of it, and the pages stay here for reads and later syncs."""
    fd = write_and_sync("f")
    absorbed = ageless.value("pages_absorbed")
    assert ageless.value("pages_out_of_sync") >= PAGES
    age()
    assert wait_for(lambda: not ageless.value("pages_out_of_sync"))
    assert ageless.value("pages_clean") >= PAGES and ageless.value("pages_reclaimed") == 0
    assert (LOWER / "f").read_bytes() == b"d" * PAGES * PAGE
    syncs = ageless.value("syncs_absorbed")
    os.pwrite(fd, b"e" * PAGE, 0)
    os.fdatasync(fd)
    assert ageless.value("syncs_absorbed") == syncs + 1 and ageless.value("pages_absorbed") <= absorbed + 1
    assert wait_for(lambda: not ageless.value("pages_out_of_sync"))
    assert (LOWER / "f").read_bytes() == b"e" * PAGE + b"d" * (PAGES - 1) * PAGE
    os.close(fd)


def test_off(ageless):
    """With 0 nothing goes below without need; a remount that sets an age finds what is old already."""
    fd = write_and_sync("f")
    time.sleep(5)
    assert ageless.value("pages_out_of_sync") >= PAGES
    age()
    assert wait_for(lambda: not ageless.value("pages_out_of_sync"))
    os.close(fd)


def test_pinned_data_stay(ageless):
    """To write them would make no room."""
    fd = write_and_sync("f")
    run(f"forebay pin {MOUNT / 'f'}")
    age()
    time.sleep(6)
    assert ageless.value("pages_out_of_sync") >= PAGES
    run(f"forebay unpin {MOUNT / 'f'}")
    assert wait_for(lambda: not ageless.value("pages_out_of_sync"))
    os.close(fd)


@BY_THE_CLOCK
def test_storage_is_busy(ageless):
    """While other programs use the SSD, the data wait."""
    fd = write_and_sync("f")
    ended = threading.Event()

    def read():
        disk = os.open(ageless.device, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, PAGE) as memory:
            while not ended.is_set():
                os.preadv(disk, [memory], 0)
        os.close(disk)
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        age()
        time.sleep(8)
        left = ageless.value("pages_out_of_sync")
    finally:
        ended.set()
        for reader in readers:
            reader.join()
        os.close(fd)
    assert left >= PAGES
    assert wait_for(lambda: not ageless.value("pages_out_of_sync"))

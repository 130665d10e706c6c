# SPDX-License-Identifier: GPL-2.0-only
"""Files, users and other loads, as the tests of pins need them."""

import os
import signal

import pytest
from libc import MAP_SHARED_VALIDATE, MAP_SYNC
from other_user import become
from stack import MOUNT, PAGE

DAX = MAP_SHARED_VALIDATE | MAP_SYNC


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


def locks_in_a_child(uid, action):
    """Forks a child of that user that carries out an action and then waits. Returns the child's process
    number once the action is done."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            become(uid)
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

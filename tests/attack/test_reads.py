# SPDX-License-Identifier: GPL-2.0-only
"""Each byte that a read returns was in the file once, even beside appends or truncation and rewriting."""

import contextlib
import os
import subprocess

import pytest
from libc import pages
from other_user import run_as
from stack import MOUNT

MIB = 1 << 20
KINDS = ["read", "preadv", "splice", "sendfile", "direct", "aio", "aio-direct", "uring", "uring-direct"]


@contextlib.contextmanager
def fives(path, mib):
    """A new file that holds nothing but 0x55, world-readable."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for at in range(mib):
            os.pwrite(fd, b"\x55" * MIB, at * MIB)
        os.fsync(fd)
        yield fd
    finally:
        os.close(fd)


def read_beside(attacker, path, mib, change, seconds=4):
    """Reads in each way beside a process that changes the file; returns the ways with wrong bytes."""
    found = []
    for kind in KINDS:
        with fives(path, mib), subprocess.Popen([attacker, change, path, str(seconds + 1), str(mib)], stdout=subprocess.DEVNULL) as changer:
            out = run_as(1234, attacker, "reads", path, str(seconds), kind, check=True, text=True, stdout=subprocess.PIPE).stdout
            assert changer.wait() == 0
        reads, wrong, first = map(int, out.split())
        print(f"{kind}: {reads} reads, {wrong} bytes that no task wrote, the first at {first}")
        assert reads > 0, f"{kind}: no read returned a byte"
        if wrong:
            found.append(kind)
    return found


@pytest.mark.parametrize("stack", [{}, {"fs": "xfs"}], indirect=True, ids=["ext4", "xfs"])
def test_growing(stack, attacker):
    """Synced appends grow the file in PMem. The lower file grows by volatile ones; its tail is stale."""
    del stack
    assert not read_beside(attacker, MOUNT / "f", 64, "grow")


def test_truncated_and_written_again(stack, attacker):
    """The file is truncated to 0 and written again, in pieces. Some are synced, and so in PMem."""
    del stack
    assert not read_beside(attacker, MOUNT / "f", 2, "rewrite")


def test_shorter_within_a_page(stack, attacker):
    """The file is truncated within a page that PMem has, and written again."""
    del stack
    assert not read_beside(attacker, MOUNT / "f", 1, "shorten", seconds=2)


def requests(attacker, path, mib):
    """What a read, a write and another read return."""
    return [int(subprocess.run([attacker, "aio", path, str(mib), how], check=True, text=True, stdout=subprocess.PIPE).stdout)
            for how in ("read", "write", "read")]


@pytest.mark.parametrize("mib", [1, 2, 3, 4, 6, 16])
def test_asynchronous_requests_are_whole(shared, folder, attacker, mib):
    """Buffered libaio from and into untouched memory transfers the length that was asked for."""
    del shared
    with fives(folder / "f", 16) as fd:
        assert requests(attacker, folder / "f", mib) == [mib * MIB] * 3
        os.fsync(fd)
        os.pwrite(fd, b"x", 0)
        os.fdatasync(fd)
        assert pages(fd)
        assert requests(attacker, folder / "f", mib) == [mib * MIB] * 3

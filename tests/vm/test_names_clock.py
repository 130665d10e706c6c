# SPDX-License-Identifier: GPL-2.0-only
"""Names after a power cut, when the system clock was set back: before the cut, or at the next boot (names_pair.py)."""

import contextlib
import os
import time

import pytest
from clock import next_tick
from names_pair import BOTH, XfsPair, make_within_a_tick, mount_command, pair_fixture, settle, sync, write
from stack import LOWER, MOUNT, run
from test_cuts import LEFT, LEFT_LOWER
from test_emu import module_fixture

emulated_devices = module_fixture
two_file_systems = pair_fixture
BACK = 3600             # s
XFS = pytest.mark.parametrize("pair", [XfsPair], indirect=True, ids=["xfs"])


def set_clock(seconds):
    """By so many seconds, forth or back."""
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


@contextlib.contextmanager
def clock_set_back():
    """Until the end of it."""
    set_clock(-BACK)
    try:
        yield
    finally:
        set_clock(BACK)


@BOTH
def test_set_back_before_the_cut(pair):
    """A folder's last change has an earlier time than its last record, and only storage has it."""
    os.mkdir(MOUNT / "d")
    settle()
    write(MOUNT / "d/a", b"a" * 5000)
    with clock_set_back():
        write(MOUNT / "d/b", b"", synced=False)
        sync(LOWER / "d/b")
        for left in pair.after_cuts(committed=False):
            assert (left / "d/a").read_bytes() == b"a" * 5000 and (left / "d/b").exists()


@BOTH
def test_set_back_before_the_first_record(pair):
    """All of the log's changes are earlier than those before the log's first record."""
    os.mkdir(MOUNT / "d")
    settle()
    with clock_set_back():
        write(MOUNT / "d/a", b"a" * 5000)
        os.rename(MOUNT / "d/a", MOUNT / "d/b")
        sync(MOUNT / "d")
        for left in pair.after_cuts():
            assert (left / "d/b").read_bytes() == b"a" * 5000 and os.listdir(left / "d") == ["b"]


@BOTH
def test_mount_with_the_clock_in_the_past(pair):
    """As on a machine whose clock has no battery."""
    os.mkdir(MOUNT / "d")
    settle()
    write(MOUNT / "d/a", b"a" * 5000)
    os.mkdir(MOUNT / "d/e")
    sync(MOUNT / "d")
    pair.cut()
    with clock_set_back():
        pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
        assert pair.value("names_replayed") > 0, "the log was emptied: the test shows nothing"
        assert (LEFT / "d/a").read_bytes() == b"a" * 5000 and (LEFT / "d/e").is_dir()
        write(LEFT / "d/e/f", b"after")
        pair.add_third()
        pair.cut_pairs(0, (pair.storage_left, pair.storage_third), (pair.cache_left, pair.cache_third))


def read(pair):
    """A folder is read below after the cut."""
    pair.mount_lower(pair.storage_left, LEFT_LOWER)
    before = os.stat(LEFT_LOWER / "d").st_atime_ns
    assert os.listdir(LEFT_LOWER / "d") == [] and os.stat(LEFT_LOWER / "d").st_atime_ns != before


def read_and_mount(pair):
    """Before the mount."""
    read(pair)
    run(mount_command(pair.cache_left, LEFT_LOWER, LEFT))
    assert pair.value("names_replayed") > 0, "the log was emptied: the test shows nothing"
    assert (LEFT / "d/a").read_bytes() == b"a" * 5000


@XFS
def test_read_after_the_clock_was_set_back(pair):
    """The log's heartbeats speak of the time before that no longer, so what is read after the cut is seen."""
    os.mkdir(MOUNT / "d")
    settle()
    with clock_set_back():
        write(MOUNT / "d/a", b"a" * 5000)
        pair.cut()
        time.sleep(4)       # more than a heartbeat speaks of
        read_and_mount(pair)


@XFS
def test_read_with_the_clock_in_the_past(pair):
    """After the cut the machine has booted with a clock that is behind."""
    os.mkdir(MOUNT / "d")
    settle()
    next_tick()
    write(MOUNT / "d/a", b"a" * 5000)
    pair.cut()
    with clock_set_back():
        read_and_mount(pair)


@XFS
@pytest.mark.parametrize("times", (1, 3), ids=("once", "often"))
def test_read_in_the_past_within_a_tick(pair, times):
    """The folder has the time that it has with the change already, so its counter alone tells what storage has."""
    make_within_a_tick("a")
    pair.cut()
    with clock_set_back():
        for _ in range(times - 1):
            read(pair)
            run(f"umount {LEFT_LOWER}")     # so it comes into memory again
        read_and_mount(pair)


@XFS
def test_all_of_a_tick_is_on_storage(pair):
    """The folder looks as if it was read since the cut, while the clock was behind."""
    make_within_a_tick("a", "b", "c")
    sync(LOWER / "d/c")
    for left in pair.after_cuts(committed=False):
        assert {path.name: path.read_bytes() for path in (left / "d").iterdir()} == {name: name.encode() * 5000 for name in "abc"}


@XFS
def test_old_folder_read_with_the_clock_in_the_past(pair):
    """The new access time is later than the folder's birth, and its last change lies ahead."""
    set_clock(-2 * BACK)
    os.mkdir(MOUNT / "d")
    set_clock(2 * BACK)
    settle()
    write(MOUNT / "d/a", b"a" * 5000)
    pair.cut()
    with clock_set_back():
        read_and_mount(pair)

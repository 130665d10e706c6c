# SPDX-License-Identifier: GPL-2.0-only
"""Names and attributes after a power cut, over xfs: its flags, and its counters when a folder is read (names_pair.py)."""

import fcntl
import os
import stat
import struct
import time

import pytest
from clock import next_tick
from names_pair import XfsPair, make_within_a_tick, mount_command, pair_fixture, settle, sync, write
from stack import LOWER, MOUNT, fails, run
from test_cuts import LEFT, LEFT_LOWER
from test_emu import module_fixture

emulated_devices = module_fixture
two_file_systems = pair_fixture
GET_XFLAGS, SET_XFLAGS = 0x801c581f, 0x401c5820
XFLAGS = struct.Struct("<I24x")     # struct fsxattr; the rest stays 0
NODEFRAG = 0x2000
BEAT = 4                            # s: more than a heartbeat speaks of


class LazyPair(XfsPair):
    """Access times are written some time after they have changed."""

    lower_options = "nouuid,lazytime"


class SmallInodesPair(XfsPair):
    """Inode numbers of 32 bits."""

    lower_options = "nouuid,inode32"


XFS = pytest.mark.parametrize("pair", [XfsPair], indirect=True, ids=["xfs"])
BOTH = pytest.mark.parametrize("pair", [XfsPair, LazyPair], indirect=True, ids=["xfs", "lazytime"])


def xflags(path, value=None):
    """Those of a file or folder, which gets others first if they are given."""
    fd = os.open(path, os.O_RDONLY)
    if value is not None:
        fcntl.ioctl(fd, SET_XFLAGS, XFLAGS.pack(value))
    value, = XFLAGS.unpack(fcntl.ioctl(fd, GET_XFLAGS, bytes(XFLAGS.size)))
    os.close(fd)
    return value


@XFS
def test_inherited_flag_of_xfs(pair):
    """It is none of those that chattr knows."""
    os.mkdir(MOUNT / "top")
    xflags(MOUNT / "top", NODEFRAG)
    settle()
    time.sleep(BEAT)                # the log is on
    os.mkdir(MOUNT / "top/d")
    write(MOUNT / "top/d/f", b"f" * 5000)
    names = ("top/d", "top/d/f")
    assert all(xflags(MOUNT / name) & NODEFRAG for name in names)
    sync(MOUNT / "top")
    for left in pair.after_cuts(committed=False):       # the log doesn't hold it
        assert [bool(xflags(left / name) & NODEFRAG) for name in names] == [True, True]
        assert (left / "top/d/f").read_bytes() == b"f" * 5000


@pytest.mark.parametrize("pair", [XfsPair, SmallInodesPair], indirect=True, ids=["to_inode32", "to_inode64"])
@pytest.mark.parametrize("remounted", (False, True), ids=("after_the_cut", "before_the_cut"))
def test_size_of_inode_numbers(pair, remounted):
    """It changes by a mount option, and file handles of xfs with it."""
    other = "inode64" if pair.lower_options.endswith("32") else "inode32"
    write(MOUNT / "stored", b"s" * 5000)
    write(MOUNT / "stored", b"t" * 5000)
    settle()
    write(MOUNT / "stored", b"u" * 5000)
    write(MOUNT / "f", b"f" * 5000)
    if remounted:
        run(f"mount -o remount,{other} {LOWER}")
        write(MOUNT / "f", b"g" * 5000)
        write(MOUNT / "g", b"g" * 5000)
        os.chmod(MOUNT / "stored", 0o604)
        sync(MOUNT / "stored")
    pair.lower_options = f"nouuid,{other}"
    pair.cut()
    pair.mount_lower(pair.storage_left, LEFT_LOWER)
    assert "is older than what was made durable" in fails(f"forebay status {LEFT_LOWER}")
    run(f"umount {LEFT_LOWER}")
    for left in pair.after_cuts():
        assert (left / "stored").read_bytes() == b"u" * 5000
        assert (left / "f").read_bytes() == (b"g" if remounted else b"f") * 5000
        if remounted:
            assert (left / "g").read_bytes() == b"g" * 5000 and stat.S_IMODE(os.stat(left / "stored").st_mode) == 0o604


@BOTH
@pytest.mark.parametrize("written", (True, False), ids=("written", "in_memory"))
@pytest.mark.parametrize("tick", (False, True), ids=("", "tick"))
def test_folder_that_was_read_after_the_cut(pair, written, tick):
    """A new access time raises the folder's counter, and is no change of it. Its ctime tells, but for changes of one tick."""
    if tick:
        make_within_a_tick("f")
        changed = os.stat(MOUNT / "d").st_ctime_ns
    else:
        os.mkdir(MOUNT / "d")
        settle()
        next_tick()
        write(MOUNT / "d/f", b"f" * 5000)
    pair.cut()
    time.sleep(BEAT)
    pair.mount_lower(pair.storage_left, LEFT_LOWER)
    before = os.stat(LEFT_LOWER / "d")
    assert not tick or before.st_ctime_ns == changed, "not of one tick: the test shows nothing"
    assert os.listdir(LEFT_LOWER / "d") == [] and os.stat(LEFT_LOWER / "d").st_atime_ns > before.st_atime_ns
    if written:
        run(f"umount {LEFT_LOWER}")
        pair.mount_lower(pair.storage_left, LEFT_LOWER)
    run(mount_command(pair.cache_left, LEFT_LOWER, LEFT))
    assert pair.value("names_replayed") > 0, "the log was emptied: the test shows nothing"
    assert (LEFT / "d/f").read_bytes() == b"f" * 5000


@XFS
def test_changes_that_failed(pair):
    """They leave the folder's counter as storage has it. Otherwise storage would look older than the log."""
    os.mkdir(MOUNT / "d")
    settle()
    for _ in range(3):
        with pytest.raises(OSError):
            os.removexattr(MOUNT / "d", "user.none")
    write(MOUNT / "d/f", b"f" * 5000)
    for left in pair.after_cuts():
        assert (left / "d/f").read_bytes() == b"f" * 5000

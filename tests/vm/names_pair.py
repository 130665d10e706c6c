# SPDX-License-Identifier: GPL-2.0-only
"""File systems with a name log, and what power cuts leave of them. On emulated devices, a cut is a copy (test_cuts.py). ext4
below is told not to commit its journal by itself, so a cut leaves storage without the names."""

import os
import struct
import time
from pathlib import Path

import pytest
from clock import REALTIME_COARSE, next_tick
from conftest import clean_up
from libc import syncfs
from stack import MOUNT, counter, create_emulated, run
from test_cuts import LEFT, LEFT_LOWER, Pair, cut

THIRD, THIRD_LOWER = Path("/mnt/third"), Path("/mnt/third-lower")
TRIES = 100
OWNER, USER, GROUP, MASK, OTHER, NO_ID = 1, 2, 4, 0x10, 0x20, 0xffffffff         # tags of an ACL


def mount_command(cache, lower, folder):
    """Of forebay."""
    return f"mount -t forebay -o cache={cache},allow_volatile_cache {lower} {folder}"


class NamesPair(Pair):
    """With a name log."""

    cache_mib, format_options = 16, "--names 1M"
    lower_options = "commit=900"

    def mount_lower(self, storage, lower):
        """The file system below alone."""
        run(f"mount -o {self.lower_options} {storage} {lower}")

    def mount(self, storage, cache, lower, folder):     # pylint: disable=arguments-differ
        """Both file systems."""
        self.mount_lower(storage, lower)
        run(mount_command(cache, lower, folder))

    def after_cuts(self, committed=True):
        """As for caches without a log. The first mount must have had something to replay, if a call has committed
        something; for later ones, the worker may have brought it to storage."""
        for left in super().after_cuts():
            assert not committed or self.value("names_replayed") > 0, "storage had everything: the test shows nothing"
            committed = False
            assert not list(LEFT_LOWER.glob(".forebay-replay*"))
            yield left

    def value(self, name):
        """Of the mount that the cut left."""
        return counter(self.cache_left, name)

    def add_third(self):
        """Another set of devices, for what a second cut leaves."""
        self.storage_third = create_emulated(f"--size {self.mib}M --track")
        self.cache_third = create_emulated(f"--size {self.cache_mib}M --track")
        for folder in (THIRD, THIRD_LOWER):
            folder.mkdir(parents=True, exist_ok=True)

    def cut_pairs(self, seed, *pairs):
        """The same for any pairs of devices."""
        cut(pairs, seed)

    storage_third = cache_third = None


class XfsPair(NamesPair):
    """Over xfs: one that is smaller than mkfs.xfs likes. A copy is mounted beside it, and has the same UUID."""

    mkfs = "mkfs.xfs -fqK --unsupported -d size={mib}m {device}"
    lower_options = "nouuid"

    def __init__(self):
        run("modprobe xfs && sysctl -qw fs.xfs.xfssyncd_centisecs=720000")
        super().__init__()


BOTH = pytest.mark.parametrize("pair", [NamesPair, XfsPair], indirect=True, ids=["ext4", "xfs"])


@pytest.fixture(name="pair")
def pair_fixture(request):
    """A fresh pair of file systems."""
    yield getattr(request, "param", NamesPair)()
    for folder in (LEFT, LEFT_LOWER, THIRD, THIRD_LOWER):
        run(f"umount {folder}", False)
    clean_up()


def sync(path):
    """fsync of a file or folder."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def write(path, data, synced=True):
    """Makes a file."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o640)
    os.write(fd, data)
    if synced:
        os.fsync(fd)
    os.close(fd)


def settle():
    """Storage has all that was done until now, and the log is empty."""
    fd = os.open(MOUNT, os.O_RDONLY)
    syncfs(fd)
    os.close(fd)


def old_folder_of_a_tick():
    """Makes a folder whose access time is from before its birth, as that of one that was copied. Returns the time of its changes,
    without asking it for that."""
    while True:
        tick = next_tick()
        os.mkdir(MOUNT / "d")
        os.utime(MOUNT / "d", (1, 1))
        if time.clock_gettime_ns(REALTIME_COARSE) == tick:
            return tick
        os.rmdir(MOUNT / "d")


def made_within_a_tick(*names):
    """Storage takes longer than a tick, so the clock is set back to the folder's time. The next tick may still come first."""
    tick = old_folder_of_a_tick()
    settle()
    time.clock_settime_ns(time.CLOCK_REALTIME, tick)
    for name in names:
        write(MOUNT / "d" / name, name.encode() * 5000)
    if os.stat(MOUNT / "d").st_ctime_ns == tick:
        return True
    run(f"rm -r {MOUNT}/d")
    return False


def make_within_a_tick(*names):
    """A folder that storage has, and files in it that the log alone has. All its changes have the same time, and its access
    time is from before its birth, as that of one that was copied."""
    assert any(made_within_a_tick(*names) for _ in range(TRIES))


def xattrs_of(path):
    """All user.* and trusted.* attributes."""
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith(("user.", "trusted."))}


def acl(*entries):
    """For setxattr: entries of tag, permissions and id."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def acl_of(path):
    """Lines of getfacl, without those that say whose it is."""
    return {line for line in run(f"getfacl -pnE {path}").splitlines() if line and line[0] != "#"}


def flags_of(path):
    """Letters of lsattr, without those that say how a file is stored."""
    return set(run(f"lsattr -d {path}").split()[0]) - set("-eI")

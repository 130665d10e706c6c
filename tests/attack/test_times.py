# SPDX-License-Identifier: GPL-2.0-only
"""Time stamps: an fsync makes them durable, and stores through mappings move them, whatever CPU caches keep."""

import json
import os
import signal
import time
from contextlib import contextmanager

import pytest
from clock import next_tick
from conftest import clean_up
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, drop, syncfs
from stack import LOWER, MKFS, MOUNT, PAGE, close_files, create_emulated, run
from test_cuts import LEFT, LEFT_LOWER, SEEDS, Pair, cut, settled

IDLE = 30       # seconds after which a sync call looks whether a mapping is still stored to; fs/sync/mapped.c
YEAR = 365 * 24 * 3600


def times(path):
    """mtime and ctime."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_ctime_ns


def value(pair, name):
    """A counter of the mount."""
    return int(run(f"cat /sys/fs/forebay/{pair.cache[len('/dev/'):]}/{name}"))


class TimedPair(Pair):
    """The same with caches of either kind, and time stamps that cuts must leave."""

    def __init__(self, fs="ext4", mib=32, persistence="mem-ctrl"):      # pylint: disable=super-init-not-called
        self.storage, self.storage_left = (create_emulated(f"--size {mib}M --track") for _ in range(2))
        self.cache, self.cache_left = (create_emulated(f"--size 8M --track --persistence {persistence}") for _ in range(2))
        for folder in (LOWER, MOUNT, LEFT, LEFT_LOWER):
            folder.mkdir(parents=True, exist_ok=True)
        run(MKFS[fs].format(device=self.storage, mib=mib))
        run(f"forebay format {self.cache}")
        self.mount(self.storage, self.cache, LOWER, MOUNT)

    def must_keep(self, expected, name="f"):
        """After cuts at this moment the file has these times."""
        for left in self.after_cuts():
            assert times(left / name) == expected


@pytest.fixture(name="emulated")
def emulated_fixture():
    """The module; no device is left behind."""
    run("modprobe forebay-emu; modprobe forebay")
    yield
    close_files("/mnt/")
    run(f"umount {LEFT}; umount {LEFT_LOWER}", False)
    clean_up()
    for device in json.loads(run("forebay emu list --json")):
        run(f"forebay emu remove {device['device']}")


@pytest.fixture(name="pair")
def pair_fixture(emulated):
    """forebay over ext4, where CPU caches are lost."""
    del emulated
    return TimedPair()


def in_pmem(pages=4):
    """An open file of so many pages: the first is in PMem, written and synced long ago."""
    fd = settled(pages)
    os.pwrite(fd, b"o" * PAGE, 0)
    os.fsync(fd)
    next_tick()
    return fd


def test_write_and_fsync(pair):
    """The issue: mtime and ctime after the cut were those of before the write."""
    fd = in_pmem()
    below = value(pair, "syncs_lower")
    for data in (b"n", b"m"):
        before = times(MOUNT / "f")
        os.pwrite(fd, data, 0)
        os.fsync(fd)
        after = times(MOUNT / "f")
        assert after > before and after[0] == after[1]
        pair.must_keep(after)
        next_tick()
    assert value(pair, "syncs_lower") == below, "for the times alone no sync goes to storage"
    os.close(fd)


@pytest.mark.parametrize("flag", [os.O_SYNC, 0])
def test_append(pair, flag):
    """Size and time in one record, and the page is new; with O_SYNC, and as generic/392 does it."""
    fd = in_pmem()
    below = value(pair, "syncs_lower")
    other = os.open(MOUNT / "f", os.O_WRONLY | os.O_APPEND | flag)
    os.write(other, b"a" * 1024)
    if not flag:
        os.fsync(fd)
    after = times(MOUNT / "f")
    assert value(pair, "syncs_lower") == below
    for left in pair.after_cuts():
        assert times(left / "f") == after
        assert os.stat(left / "f").st_size == 4 * PAGE + 1024
    os.close(other)
    os.close(fd)


def test_recovery_is_cut_off(pair):
    """What a first recovery has brought below, and what not, is recovered by a second one as well."""
    fd = in_pmem()
    os.pwrite(fd, b"a" * 100, 4 * PAGE)
    os.fsync(fd)
    after = times(MOUNT / "f")
    os.close(fd)
    cuts = pair.after_cuts()
    assert times(next(cuts) / "f") == after
    run(f"umount {MOUNT} && umount {LOWER}")
    for seed in SEEDS:
        cut([(pair.storage_left, pair.storage), (pair.cache_left, pair.cache)], seed)
        pair.mount(pair.storage, pair.cache, LOWER, MOUNT)
        stat = os.stat(MOUNT / "f")
        assert (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size) == (*after, 4 * PAGE + 100)
        run(f"umount {MOUNT} && umount {LOWER}")


def test_fdatasync_owes_the_time_to_fsync(pair):
    """fdatasync leaves times out, and costs nothing; the fsync after it has only them to make durable."""
    fd = in_pmem()
    os.pwrite(fd, b"n", 0)
    os.fdatasync(fd)
    absorbed, below = value(pair, "syncs_absorbed"), value(pair, "syncs_lower")
    os.fsync(fd)
    assert (value(pair, "syncs_absorbed"), value(pair, "syncs_lower")) == (absorbed + 1, below)
    pair.must_keep(times(MOUNT / "f"))
    os.close(fd)


def test_large_fdatasync_then_fsync(pair):
    """Without a record the time is made durable below."""
    fd = settled(4)
    next_tick()
    os.pwrite(fd, b"n" * 100 * PAGE, 0)
    os.fdatasync(fd)
    os.fsync(fd)
    pair.must_keep(times(MOUNT / "f"))
    below = value(pair, "syncs_lower")
    os.fsync(fd)
    assert value(pair, "syncs_lower") == below, "paid"
    os.close(fd)


def test_time_set_by_hand(pair):
    """It is newer than the record's, though it lies before it; and a write after it is newer again."""
    fd = in_pmem()
    os.pwrite(fd, b"n", 0)
    os.fsync(fd)
    next_tick()
    os.utime(MOUNT / "f", ns=(1, 1_000_000_007))
    os.fsync(fd)
    after = times(MOUNT / "f")
    assert after[0] == 1_000_000_007
    pair.must_keep(after)
    os.pwrite(fd, b"m", 0)
    os.fsync(fd)
    pair.must_keep(times(MOUNT / "f"))
    os.close(fd)


def test_record_goes(pair):
    """The time is below before its record goes: by writeback, or, if only the time was left, by itself."""
    fd = in_pmem()
    os.pwrite(fd, b"n", 0)
    os.fsync(fd)
    after = times(MOUNT / "f")
    drop(fd)
    assert value(pair, "files_used") == 0
    pair.must_keep(after)
    os.pwrite(fd, b"m", 0)
    os.fdatasync(fd)        # the page, again
    os.pwrite(fd, b"m", 0)
    next_tick()
    run(f"forebay drain {MOUNT}")
    os.fsync(fd)
    after = times(MOUNT / "f")
    pair.must_keep(after)
    drop(fd)
    assert value(pair, "files_used") == 0
    pair.must_keep(after)
    os.close(fd)


def test_drain_takes_the_time_below(pair):
    """Also without any page to write back: the lower file, cut off alone, has it."""
    fd = in_pmem()
    os.pwrite(fd, b"n", 0)
    run(f"forebay drain {MOUNT}")
    os.fsync(fd)
    after = times(MOUNT / "f")
    run(f"forebay drain {MOUNT}")
    for _ in pair.after_cuts():
        run(f"umount {LEFT} && umount {LEFT_LOWER} && forebay format --force {pair.cache_left}")
        pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
        assert times(LEFT / "f") == after
    os.close(fd)


def test_syncfs(pair):
    """It goes below, with all times."""
    fd = in_pmem()
    os.pwrite(fd, b"n", 0)
    syncfs(fd)
    after = times(MOUNT / "f")
    pair.must_keep(after)
    os.close(fd)


def test_clock_set_back(pair):
    """What was said to be durable while the clock ran ahead doesn't come back over what was synced since."""
    fd = in_pmem()
    now = time.time()
    try:
        time.clock_settime(time.CLOCK_REALTIME, now + YEAR)
        next_tick()
        os.pwrite(fd, b"n", 0)
        os.fsync(fd)
        ahead = times(MOUNT / "f")
        assert ahead[0] > (now + YEAR - 60) * 1e9
        pair.must_keep(ahead)
        time.clock_settime(time.CLOCK_REALTIME, now)
        next_tick()
        for sync in (os.fsync, syncfs):
            os.utime(MOUNT / "f", ns=(1, 1_000_000_007))
            sync(fd)
            pair.must_keep(times(MOUNT / "f"))
            os.pwrite(fd, b"m", 0)
            sync(fd)
            pair.must_keep(times(MOUNT / "f"))
    finally:
        time.clock_settime(time.CLOCK_REALTIME, now)
    os.close(fd)


@pytest.mark.parametrize("fs, mib", [("ext2", 32), ("btrfs", 128)])
def test_other_file_systems(emulated, fs, mib):
    """Recovery sets both times there, too."""
    del emulated
    pair = TimedPair(fs, mib)
    fd = in_pmem()
    os.pwrite(fd, b"n" * 2000, 3 * PAGE)
    os.pwrite(fd, b"n" * 2000, 4 * PAGE)
    os.fsync(fd)
    pair.must_keep(times(MOUNT / "f"))
    os.close(fd)


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}], indirect=True)
def test_shutdown(stack):
    """generic/392: the lower file system ends at once; what its journal has not, is lost."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, bytes(4 << 20), 0)
    os.fsync(fd)
    next_tick()
    os.pwrite(fd, b"n" * 1024, 4 << 20)
    os.fsync(fd)
    before = os.fstat(fd)
    run(f"xfs_io -xc shutdown {LOWER}")
    os.close(fd)
    run(f"umount {MOUNT}; umount {LOWER}")
    stack.mount_lower()
    stack.mount()
    after = os.stat(MOUNT / "f")
    for field in ("st_size", "st_atime_ns", "st_mtime_ns", "st_ctime_ns"):
        assert getattr(after, field) == getattr(before, field), field


@contextmanager
def settled_mapping():
    """A file of 8 pages that storage has, and a mapping of it."""
    fd = settled(8)
    with Mapping(fd, 8 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        yield fd, mapping
    os.close(fd)


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_stores_move_the_time(emulated, persistence):
    """The issue: of four rounds of store, msync and fsync none moved mtime where CPU caches are persistent."""
    del emulated
    pair = TimedPair(persistence=persistence)
    with settled_mapping() as (fd, mapping):
        for sync in (os.fsync, os.fdatasync, syncfs, lambda fd: mapping.sync()):
            for letter in b"abcd":
                before = times(MOUNT / "f")
                next_tick()
                mapping.write(PAGE, bytes([letter]))
                mapping.sync(PAGE, PAGE)
                sync(fd)
                after = times(MOUNT / "f")
                assert after > before
        mapping.write(PAGE, b"e")
        os.fsync(fd)
        pair.must_keep(times(MOUNT / "f"))


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_stat_sees_stores(emulated, persistence):
    """stat() tells of stores that no sync call has followed, once. utimes() sets a time that sync calls leave alone."""
    del emulated
    TimedPair(persistence=persistence)
    with settled_mapping() as (fd, mapping):
        def store_and_sync():
            for n in range(10):     # no fault tells of the next store
                mapping.write(0, bytes([n]))
                os.fsync(fd)

        store_and_sync()
        before = times(MOUNT / "f")
        time.sleep(1.1)
        mapping.write(0, b"a")
        after = times(MOUNT / "f")
        assert after > before
        time.sleep(1.1)
        assert times(MOUNT / "f") == after
        store_and_sync()
        os.utime(fd, (YEAR, YEAR))
        for _ in range(3):
            next_tick()
            os.fsync(fd)
            assert times(MOUNT / "f")[0] == YEAR * 10**9
        mapping.write(0, b"b")
        assert times(MOUNT / "f")[0] > YEAR * 10**9


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_time_set_between_store_and_sync(emulated, persistence):
    """utimes() after a store: the sync call that makes the store durable leaves the time alone. A store after utimes() doesn't."""
    del emulated
    TimedPair(persistence=persistence)
    with settled_mapping() as (fd, mapping):
        for letter in b"abc":   # from the second on, the page stays mapped over a sync call
            mapping.write(0, bytes([letter]))
            os.utime(fd, (YEAR, YEAR))
            os.fsync(fd)
            assert times(MOUNT / "f")[0] == YEAR * 10**9
        mapping.write(0, b"d")
        os.utime(fd, (YEAR, YEAR))
        mapping.write(0, b"e")
        os.fsync(fd)
        assert times(MOUNT / "f")[0] > YEAR * 10**9


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_time_set_after_the_pages_went(emulated, persistence):
    """utimes() after the pages of the stores have left PMem, and the file's record with them: sync calls leave the time alone."""
    del emulated
    pair = TimedPair(persistence=persistence)
    with settled_mapping() as (fd, mapping):
        for letter in b"ab":    # the second leaves the page mapped over the sync call
            mapping.write(0, bytes([letter]))
            os.fsync(fd)
        drop(fd)
        assert value(pair, "files_used") == 0
        os.utime(fd, (YEAR, YEAR))
        os.fsync(fd)
        assert times(MOUNT / "f")[0] == YEAR * 10**9


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_time_set_while_storage_is_frozen(emulated, persistence):
    """utimes() waits for the thaw. No sync call after it moves the time for a store from before."""
    del emulated
    TimedPair(persistence=persistence)
    with settled_mapping() as (fd, mapping):
        for letter in b"ab":    # the second leaves the page mapped over the sync call
            mapping.write(0, bytes([letter]))
            os.fsync(fd)
        mapping.write(0, b"c")
        run(f"fsfreeze -f {LOWER}")
        pid = os.fork()
        if not pid:
            os.utime(fd, (YEAR, YEAR))
            os._exit(0)
        time.sleep(1)
        run(f"fsfreeze -u {LOWER}")
        assert os.waitpid(pid, 0)[1] == 0
        os.fsync(fd)
        assert times(MOUNT / "f")[0] == YEAR * 10**9


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_time_set_beside_sync_calls(emulated, persistence):
    """utimes() while another task makes one sync call after the other: none moves the time for a store from before."""
    del emulated
    TimedPair(persistence=persistence)
    with settled_mapping() as (fd, mapping):
        pid = os.fork()
        while not pid:
            os.fsync(fd)
        try:
            for n in range(1000):
                mapping.write(0, bytes([n % 256]))
                os.utime(fd, (YEAR, YEAR))
                os.fsync(fd)
                assert times(MOUNT / "f")[0] == YEAR * 10**9, n
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_idle_mapping(emulated, persistence):
    """Sync calls alone end to move the time: at once, or when one has looked; the next store does it again."""
    del emulated
    TimedPair(persistence=persistence)
    with settled_mapping() as (fd, mapping):
        mapping.write(0, b"a")
        os.fsync(fd)
        time.sleep(IDLE + 1 if persistence == "cpu" else 0)
        next_tick()
        os.fsync(fd)
        before = times(MOUNT / "f")
        for _ in range(5):
            next_tick()
            os.fsync(fd)
        assert times(MOUNT / "f") == before
        for letter in b"bc":
            next_tick()
            mapping.write(0, bytes([letter]))
            os.fsync(fd)
            assert times(MOUNT / "f") > before
            before = times(MOUNT / "f")

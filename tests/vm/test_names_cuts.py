# SPDX-License-Identifier: GPL-2.0-only
"""What of the names in a cache with a name log is there after a power cut that comes right after a call (names_pair.py)."""

import fcntl
import os
import stat
import struct
import subprocess
import time
from pathlib import Path

import pytest
from libc import FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, linkat
from mapped import slow_device
from names_pair import (BOTH, GROUP, MASK, NO_ID, OTHER, OWNER, THIRD, THIRD_LOWER, USER, acl, acl_of, flags_of, mount_command,
                        pair_fixture, settle, sync, write)
from stack import LOWER, MOUNT, block_name, counter, fails, run
from test_cuts import LEFT, LEFT_LOWER
from test_emu import module_fixture

emulated_devices = module_fixture
two_file_systems = pair_fixture
MOMENTS = 12            # of cuts while one mount runs
SLOW = 50               # ms that a write takes meanwhile
NODUMP = 0x40
TREES = 4               # at most: a slow machine's log may be trimmed before the cut
TRIM = 11               # s: the worker has looked at the log


def test_created_file(pair):
    write(MOUNT / "f", b"f" * 5000)
    os.chown(MOUNT / "f", 17, 18)
    sync(MOUNT / "f")
    write(MOUNT / "later", b"not synced", synced=False)
    for left in pair.after_cuts():
        status = os.stat(left / "f")
        assert (left / "f").read_bytes() == b"f" * 5000
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o640, 17, 18)
        assert set(os.listdir(left)) <= {"f", "later", "lost+found"}
        run(f"forebay drain {left}")
        assert (LEFT_LOWER / "f").read_bytes() == b"f" * 5000


def test_file_of_many_pages(pair):
    """Pages of a file that storage lacks are found by the new file, and by no other."""
    for number in range(20):
        write(MOUNT / f"f{number}", bytes([number + 1]) * (number * 2000 + 1))
    for left in pair.after_cuts():
        for number in range(20):
            assert (left / f"f{number}").read_bytes() == bytes([number + 1]) * (number * 2000 + 1)


def test_maildir(pair):
    for name in ("tmp", "new"):
        os.mkdir(MOUNT / name)
    settle()
    for number in range(5):
        write(MOUNT / f"tmp/{number}", b"%d" % number * 1000)
        os.rename(MOUNT / f"tmp/{number}", MOUNT / f"new/{number}")
        sync(MOUNT / "new")
    for left in pair.after_cuts():
        assert os.listdir(left / "tmp") == [] and len(os.listdir(left / "new")) == 5
        for number in range(5):
            assert (left / f"new/{number}").read_bytes() == b"%d" % number * 1000


def test_folder_and_file(pair):
    os.mkdir(MOUNT / "a", 0o750)
    os.mkdir(MOUNT / "a/b")
    write(MOUNT / "a/b/f", b"deep")
    for left in pair.after_cuts():
        assert (left / "a/b/f").read_bytes() == b"deep"
        assert stat.S_IMODE(os.stat(left / "a").st_mode) == 0o750


def test_unlinked_file(pair):
    write(MOUNT / "f", b"f")
    write(MOUNT / "g", b"g")
    settle()
    os.unlink(MOUNT / "f")
    sync(MOUNT)
    for left in pair.after_cuts():
        assert not (left / "f").exists() and (left / "g").read_bytes() == b"g"


def test_file_that_came_and_went(pair):
    """Created, synced, unlinked, and another by its name: the new one's pages are its own."""
    write(MOUNT / "f", b"first" * 1000)
    os.unlink(MOUNT / "f")
    write(MOUNT / "f", b"second" * 500)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"second" * 500


def test_renamed_folder(pair):
    os.makedirs(MOUNT / "a/b")
    write(MOUNT / "a/b/f", b"f")
    os.mkdir(MOUNT / "other")
    settle()
    os.rename(MOUNT / "a/b", MOUNT / "other/c")
    os.rename(MOUNT / "other", MOUNT / "a/other")
    write(MOUNT / "a/other/c/g", b"g")
    for left in pair.after_cuts():
        assert (left / "a/other/c/f").read_bytes() == b"f" and (left / "a/other/c/g").read_bytes() == b"g"
        assert os.listdir(left / "a") == ["other"]


def test_removed_folder(pair):
    os.makedirs(MOUNT / "a/b")
    settle()
    os.rmdir(MOUNT / "a/b")
    write(MOUNT / "a/b", b"a file by the folder's name")
    for left in pair.after_cuts():
        assert (left / "a/b").read_bytes() == b"a file by the folder's name"


def test_links_and_special_files(pair):
    write(MOUNT / "f", b"f")
    settle()
    os.link(MOUNT / "f", MOUNT / "hard")
    os.symlink("s" * 100, MOUNT / "soft")
    os.mknod(MOUNT / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    fd = os.open(MOUNT, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"nameless")
    linkat(f"/proc/self/fd/{fd}", MOUNT / "named")
    os.fsync(fd)
    os.close(fd)
    for left in pair.after_cuts():
        assert os.stat(left / "f").st_ino == os.stat(left / "hard").st_ino and os.stat(left / "f").st_nlink == 2
        assert os.readlink(left / "soft") == "s" * 100
        assert os.stat(left / "null").st_rdev == os.makedev(1, 3)
        assert (left / "named").read_bytes() == b"nameless"


def test_name_of_a_file_that_was_synced_without_one(pair):
    """Storage deletes a file without a name, with all that was synced in it. So its first name has to be there before a
    call commits the record of it."""
    calls = (os.fsync, os.fdatasync, lambda fd: run(f"sync -f {MOUNT}"))
    for number, call in enumerate(calls):
        fd = os.open(MOUNT, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(fd, b"nameless" * 1000)
        call(fd)
        linkat(f"/proc/self/fd/{fd}", MOUNT / f"f{number}")
        os.close(fd)
    write(MOUNT / "other", b"commits all records before its own")
    for left in pair.after_cuts(committed=False):
        assert set(os.listdir(left)) - {"lost+found"} == {"f0", "f1", "f2", "other"}
        for number in range(3):
            assert (left / f"f{number}").read_bytes() == b"nameless" * 1000


@BOTH
@pytest.mark.parametrize("known", (True, False), ids=("known", "new"))
@pytest.mark.parametrize("late", (True, False), ids=("on_storage", "logged"))
def test_written_and_renamed(pair, known, late):
    """An fsync of a file that was written, and renamed later, so that its mtime isn't its ctime."""
    write(MOUNT / "f", b"f" * 5000, synced=known)
    if known:
        settle()
    time.sleep(0.1)
    with open(MOUNT / "f", "r+b", buffering=0) as file:
        file.write(b"written")
        written = os.fstat(file.fileno()).st_mtime_ns
        time.sleep(0.1)
        os.rename(MOUNT / "f", MOUNT / "g")
        before = counter(pair.cache, "syncs_absorbed")
        os.fsync(file.fileno())
        assert counter(pair.cache, "syncs_absorbed") == before + 1
    os.link(MOUNT / "g", MOUNT / "h")
    sync(MOUNT / "h")
    if late:
        run(f"sync -f {LOWER}")
    for left in pair.after_cuts(not late):
        for name in ("g", "h"):
            assert (left / name).stat().st_mtime_ns == written
            assert (left / name).read_bytes() == b"written" + b"f" * 4993
        assert not (left / "f").exists()


def test_evicted_inodes(pair):
    """An inode that was forgotten and read again since its names or attributes changed: its fsync is no lie."""
    write(MOUNT / "f", b"f")
    write(MOUNT / "g", b"g")
    settle()
    os.rename(MOUNT / "f", MOUNT / "h")
    os.chmod(MOUNT / "g", 0o600)
    Path("/proc/sys/vm/drop_caches").write_text("2", encoding="ascii")
    sync(MOUNT / "g")
    sync(MOUNT / "h")
    for left in pair.after_cuts():
        assert (left / "h").read_bytes() == b"f" and stat.S_IMODE(os.stat(left / "g").st_mode) == 0o600


def acl_with(user):
    """For setxattr: what the mode 0644 says, and that this user may write, too."""
    return acl((OWNER, 6, NO_ID), (USER, 6, user), (GROUP, 4, NO_ID), (MASK, 6, NO_ID), (OTHER, 4, NO_ID))


def busy_tree():
    """Something of everything, all of it synced."""
    os.mkdir(MOUNT / "old")
    write(MOUNT / "old/gone", b"gone")
    write(MOUNT / "kept", b"kept")
    settle()
    os.setxattr(MOUNT / "kept", "user.number", b"16")
    os.setxattr(MOUNT / "kept", "user.number", b"17")
    os.setxattr(MOUNT / "kept", "system.posix_acl_access", acl_with(1000))
    fd = os.open(MOUNT / "kept", os.O_RDONLY)
    flags, = struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags | NODUMP))
    os.close(fd)
    os.utime(MOUNT / "kept", ns=(10 ** 18 + 3, 10 ** 18 + 4))
    for number in range(8):
        os.makedirs(MOUNT / f"d{number}/e")
        write(MOUNT / f"d{number}/e/f", bytes([number + 1]) * 9000)
        os.setxattr(MOUNT / f"d{number}/e/f", "user.number", b"%d" % number)
        os.setxattr(MOUNT / f"d{number}", "system.posix_acl_default", acl_with(number))
    os.unlink(MOUNT / "old/gone")
    os.rename(MOUNT / "old", MOUNT / "d3/moved")
    os.rename(MOUNT / "d5", MOUNT / "d4/d5")
    sync(MOUNT)


def cut_busy_tree(pair, seed):
    """What a cut leaves of a tree that storage lacks. The worker trims the log when it has had its first record for ten
    seconds, and when a file that has pages in PMem was deleted one second ago: a machine that was too slow makes the tree
    anew."""
    for _ in range(TREES):
        busy_tree()
        pair.cut_pairs(seed, (pair.storage, pair.storage_left), (pair.cache, pair.cache_left))
        if counter(pair.cache, "names_used"):
            return
        for name in set(os.listdir(MOUNT)) - {"lost+found"}:
            run(f"rm -r {MOUNT / name}")
        settle()
        time.sleep(TRIM)        # the removal's records count, too
    raise AssertionError(f"the worker trimmed the log before each of {TREES} cuts: the test shows nothing")


def check_busy_tree(top):
    """As busy_tree() left it."""
    for number in range(8):
        folder = top / ("d4/d5" if number == 5 else f"d{number}")
        assert (folder / "e/f").read_bytes() == bytes([number + 1]) * 9000, number
        assert os.getxattr(folder / "e/f", "user.number") == b"%d" % number
        assert f"default:user:{number}:rw-" in acl_of(folder)
    assert os.getxattr(top / "kept", "user.number") == b"17" and "user:1000:rw-" in acl_of(top / "kept")
    assert flags_of(top / "kept") == {"d"} and os.stat(top / "kept").st_mtime_ns == 10 ** 18 + 4
    assert os.listdir(top / "d3/moved") == []
    assert not (top / "old").exists() and not (top / "d5").exists()


def test_replayed_twice(pair):
    """What was replayed, and not synced by a call since, stays after the next cut."""
    pair.add_third()
    cut_busy_tree(pair, 1)
    pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
    assert pair.value("names_replayed") > 0
    check_busy_tree(LEFT)
    write(LEFT / "after", b"replay")
    for seed in range(4):
        pair.cut_pairs(seed, (pair.storage_left, pair.storage_third), (pair.cache_left, pair.cache_third))
        pair.mount(pair.storage_third, pair.cache_third, THIRD_LOWER, THIRD)
        check_busy_tree(THIRD)
        assert (THIRD / "after").read_bytes() == b"replay"
        run(f"umount {THIRD} && umount {THIRD_LOWER}")


def write_device(device, image):
    """All of it."""
    with open(device, "wb") as file:
        file.write(image)
        os.fsync(file.fileno())


def busy_time(device):
    """For how many ms it has had something to do."""
    return int(Path(f"/sys/block/{block_name(device)}/stat").read_text(encoding="ascii").split()[9])


def test_cut_while_replay_runs(pair):
    """N4: power fails at some moment of the mount; the next one goes on. Storage is slow, and what counts is for how long it
    was busy. So the processor's speed moves no cut. A cut within replay leaves its folder on storage, and a log. One that
    leaves no log came later: then the next moments are earlier."""
    pair.add_third()
    cut_busy_tree(pair, 0)
    sectors = int(run(f"blockdev --getsz {pair.storage_left}"))
    storage, cache = Path(pair.storage_left).read_bytes(), Path(pair.cache_left).read_bytes()
    slow = slow_device(sectors, pair.storage_left, SLOW)
    command = mount_command(pair.cache_left, LEFT_LOWER, LEFT)
    pair.mount_lower(slow, LEFT_LOWER)
    begin = busy_time(slow)
    run(command)
    busy, within = busy_time(slow) - begin, 0
    assert pair.value("names_replayed") > 0
    for moment in range(MOMENTS):
        run(f"umount {LEFT} && umount {LEFT_LOWER}")
        write_device(slow, storage)
        write_device(pair.cache_left, cache)
        pair.mount_lower(slow, LEFT_LOWER)
        begin, enough = busy_time(slow), busy * (moment + 1) // (MOMENTS + 1)
        with subprocess.Popen(command.split()) as mounting:
            while busy_time(slow) - begin < enough and mounting.poll() is None:
                time.sleep(0.005)
            pair.cut_pairs(moment, (pair.storage_left, pair.storage_third), (pair.cache_left, pair.cache_third))
            assert mounting.wait(600) == 0
        pair.mount_lower(pair.storage_third, THIRD_LOWER)
        begun = any(THIRD_LOWER.glob(".forebay-replay*"))
        run(mount_command(pair.cache_third, THIRD_LOWER, THIRD))
        if counter(pair.cache_third, "names_replayed"):
            within += begun
        else:
            busy = min(busy, enough)
        check_busy_tree(THIRD)
        assert not list(THIRD_LOWER.glob(".forebay-replay*"))
        run(f"umount {THIRD} && umount {THIRD_LOWER} && e2fsck -fn {pair.storage_third} && forebay check {pair.cache_third}")
    assert within >= MOMENTS // 4, "most cuts came before replay, or after it"


def test_names_that_other_programs_changed(pair):
    """Storage that was changed without Forebay after the cut is not touched; the mount says so, and the way out works."""
    write(MOUNT / "f", b"f")
    pair.cut_pairs(0, (pair.storage, pair.storage_left), (pair.cache, pair.cache_left))
    time.sleep(5)       # behind the last heartbeat: a change before it might be one whose record was lost
    run(f"mount {pair.storage_left} {LEFT_LOWER} && touch {LEFT_LOWER}/foreign && sync -f {LEFT_LOWER}")
    mount = f"mount -t forebay -o cache={pair.cache_left},allow_volatile_cache{{}} {LEFT_LOWER} {LEFT}"
    refused = fails(mount.format(""))
    assert not os.path.ismount(LEFT) and "names=discard" in refused, refused
    assert sorted(os.listdir(LEFT_LOWER)) == ["foreign", "lost+found"]
    run(mount.format(",names=discard"))
    write(LEFT / "g", b"g")
    assert sorted(os.listdir(LEFT)) == ["foreign", "g", "lost+found"]

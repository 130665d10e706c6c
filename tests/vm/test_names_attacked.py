# SPDX-License-Identifier: GPL-2.0-only
"""What readers of the name log's code have found: states that a power cut may leave (names_pair.py), and that mount didn't
bring back, or refused."""

import os
import stat
import struct
import subprocess
import time
from multiprocessing import Process

import pytest
from clock import BY_THE_CLOCK, next_tick
from libc import RENAME_WHITEOUT, drop, linkat, renameat2
from names_pair import BOTH, GROUP, NO_ID, OTHER, OWNER, NamesPair, acl, acl_of, pair_fixture, settle, sync, write
from stack import LOWER, MKFS, MOUNT, counter, run
from test_cuts import LEFT, LEFT_LOWER
from test_emu import module_fixture

emulated_devices = module_fixture
two_file_systems = pair_fixture
TICK_TRIES = 300
SLOW = 2000             # ms that a write to slow storage takes: the time that a heartbeat speaks of
LINKS = 65000           # ext4 allows no more
AHEAD = 6               # s: more than a heartbeat speaks of
RECORD = struct.Struct("<QQIHHBB6x")        # core/names/format.h, as the rest
FIELD = struct.Struct("<BBH")
RENAME, SELF, MAX_LINES, LINE = 6, 5, 128, 64


class MappedPair(NamesPair):
    """The file system below lies on a table of the device mapper."""

    def mount_lower(self, storage, lower):
        """Of a copy as it is."""
        if storage == self.storage:
            self.sectors = int(run(f"blockdev --getsz {storage}"))
            run(f"modprobe dm-delay; modprobe dm-flakey; dmsetup create below --table '0 {self.sectors} delay {storage} 0 0' && "
                "dmsetup mknodes")
            storage = "/dev/mapper/below"
        super().mount_lower(storage, lower)

    def become(self, target):
        """The table changes."""
        run(f"dmsetup load below --table '0 {self.sectors} {target}' && dmsetup suspend --nolockfs --noflush below && "
            "dmsetup resume below")

    sectors = 0


MAPPED = pytest.mark.parametrize("pair", [MappedPair], indirect=True, ids=["mapped"])


XFS = pytest.mark.parametrize("pair", [BOTH.args[1][1]], indirect=True, ids=["xfs"])


class ProjectPair(NamesPair):
    """ext4 with project ids."""

    mkfs = MKFS["ext4"] + " && tune2fs -O project {device}"


PROJECTS = pytest.mark.parametrize("pair", [ProjectPair, BOTH.args[1][1]], indirect=True, ids=["ext4", "xfs"])
OWNER_ALONE = acl((OWNER, 7, NO_ID), (GROUP, 0, NO_ID), (OTHER, 0, NO_ID))


@MAPPED
@BY_THE_CLOCK
def test_log_that_is_off_for_long(pair):
    """While the log is off, and storage too slow to switch it on again, names change for longer than a heartbeat speaks of."""
    os.mkdir(MOUNT / "d")
    write(MOUNT / "d/a", b"a")
    write(MOUNT / "whiteout", b"w")
    settle()
    write(MOUNT / "d/f", b"f" * 5000)
    os.mkdir(MOUNT / "barrier")
    pair.become(f"delay {pair.storage} 0 0 {pair.storage} 0 {SLOW}")
    run(f"chattr +a {MOUNT}/barrier")
    with subprocess.Popen(["sync", MOUNT / "barrier"]) as waits:      # the worker commits the lower journal now
        time.sleep(0.5)
        write(MOUNT / "d/g", b"", synced=False)                         # its record stays behind that commit
        renameat2(MOUNT / "whiteout", MOUNT / "elsewhere", RENAME_WHITEOUT)
        assert counter(pair.cache, "names_switched_off") == 1
        time.sleep(SLOW / 1000 + 0.4)
        assert waits.poll() is None, "storage isn't slow"
        write(MOUNT / "d/late", b"")            # storage has it; data would be in another transaction
        pair.cut()
        pair.become(f"delay {pair.storage} 0 0")
    pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
    assert pair.value("names_replayed") > 0, "the log was emptied: the test shows nothing"
    assert (LEFT / "d/f").read_bytes() == b"f" * 5000 and (LEFT / "d/a").read_bytes() == b"a"
    assert (LEFT / "d/late").exists()


@MAPPED
def test_journal_that_was_aborted(pair):
    """The lower journal ends in an error of storage that another program has met. What it lost isn't let go of."""
    settle()
    write(MOUNT / "f", b"f" * 5000)
    used = counter(pair.cache, "names_used")
    pair.become(f"flakey {pair.storage} 0 0 1000 1 error_writes")
    run(f"sync -f {LOWER}", False)
    pair.become(f"delay {pair.storage} 0 0")
    said = subprocess.run(["sync", "-f", MOUNT], check=False).returncode
    assert counter(pair.cache, "names_used") >= used > 0 and said
    assert (next(pair.after_cuts()) / "f").read_bytes() == b"f" * 5000


def change_and_write(fd, mode):
    """A new mode and a write, if possible within one tick of the clock. True: they were."""
    tick = next_tick()
    os.fchmod(fd, mode)
    os.pwrite(fd, b"w", 0)
    status = os.fstat(fd)
    return tick == status.st_mtime_ns == status.st_ctime_ns


@BOTH
def test_written_in_the_tick_of_a_change(pair):
    """A write right after chmod moves mtime and leaves ctime, which is that of the record: the write's mtime counts."""
    write(MOUNT / "f", b"f" * 5000)
    settle()
    with open(MOUNT / "f", "r+b", buffering=0) as file:
        for number in range(TICK_TRIES):
            if change_and_write(file.fileno(), 0o600 | number & 0o77):
                break
            time.sleep(0.01)
        else:
            pytest.skip("no two calls within one tick")
        os.fsync(file.fileno())
        written = os.fstat(file.fileno())
    status = os.stat(next(pair.after_cuts(committed=False)) / "f")
    assert (status.st_mode, status.st_mtime_ns) == (written.st_mode, written.st_mtime_ns)


def test_replaced_by_what_has_grown(pair):
    """The new file's end was appended to a page in PMem, and no call has made the new length durable."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 100)
    assert counter(pair.cache, "pages_out_of_sync") > 0
    with open(MOUNT / "f.new", "ab", buffering=0) as file:
        file.write(b"appended")
    os.rename(MOUNT / "f.new", MOUNT / "f")
    sync(MOUNT)
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == b"new" * 100 + b"appended"


def rename_forth_and_back(rounds):
    """A folder, within the one that it is in."""
    for _ in range(rounds):
        os.rename(MOUNT / "p/x", MOUNT / "p/y")
        os.rename(MOUNT / "p/y", MOUNT / "p/x")


def self_counters(device):
    """Of renames of folders in the log: the folder's counter, 0 if it didn't rise."""
    with open(device, "rb") as file:
        data = file.read()
    for at in range(0, len(data) - LINE, LINE):
        place, _, _, lines, length, kind, _ = RECORD.unpack_from(data, at)
        if kind != RENAME or not 0 < lines <= MAX_LINES or not RECORD.size < length <= lines * LINE or not place:
            continue
        field = at + RECORD.size
        while field < at + length:
            which, _, size = FIELD.unpack_from(data, field)
            field += FIELD.size
            if which == SELF and size == 16:
                yield struct.unpack_from("<Q", data, field)[0]
            field += size + 3 & ~3


def test_folder_that_is_renamed_while_it_changes(pair):
    """A rename within a folder doesn't raise the counter of the folder that it renames, on ext4. So a record that says
    otherwise has taken another task's change for its own, and storage with one of the two is refused."""
    os.makedirs(MOUNT / "p/x")
    folder = os.open(MOUNT / "p/x", os.O_RDONLY)
    settle()
    renames = Process(target=rename_forth_and_back, args=(500,))
    renames.start()
    while renames.is_alive():
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        os.unlink("f", dir_fd=folder)
    renames.join()
    os.close(folder)
    assert renames.exitcode == 0
    run(f"umount {MOUNT}")
    counters = list(self_counters(pair.cache))
    assert len(counters) > 20 and not any(counters), sum(map(bool, counters))


def test_file_of_many_names(pair):
    """A file that has as many names as ext4 allows gets another one before it loses one."""
    run(f"umount {MOUNT} && touch {LOWER}/f && umount {LOWER} && debugfs -w -R 'sif /f links_count {LINKS}' {pair.storage}")
    pair.mount(pair.storage, pair.cache, LOWER, MOUNT)
    os.rename(MOUNT / "f", MOUNT / "new")
    sync(MOUNT)
    left = next(pair.after_cuts(committed=False))
    assert (left / "new").stat().st_nlink == LINKS and not (left / "f").exists()


@BOTH
def test_attributes_that_take_two_transactions(pair):
    """A folder's counter rises with the first one. So a change that takes more of them isn't committed by the log alone."""
    os.mkdir(MOUNT / "d")
    settle()
    barriers = counter(pair.cache, "names_barriers")
    run(f"setfacl -m u:17:rwx {MOUNT}/d")
    os.setxattr(MOUNT / "d", "user.x", b"x")
    xfs = type(pair) is not NamesPair     # pylint: disable=unidiomatic-typecheck
    assert counter(pair.cache, "names_barriers") == barriers + 2 * xfs
    os.chmod(MOUNT / "d", 0o750)
    assert counter(pair.cache, "names_barriers") == barriers + 2 * xfs + 1
    sync(MOUNT / "d")
    acl = acl_of(MOUNT / "d")
    left = next(pair.after_cuts(committed=False))
    assert acl_of(left / "d") == acl and os.getxattr(left / "d", "user.x") == b"x"


def made_within_a_tick(path):
    """A folder that inherits an ACL, and whose owner changes within the same tick of the clock. False: it took longer."""
    tick = next_tick()
    os.mkdir(path)
    os.chown(path, 5, 6)
    return os.stat(path).st_ctime_ns == tick


@pytest.mark.slow       # on the debug kernel the worker may have trimmed the log before the cut
@BOTH
def test_folder_with_an_inherited_acl(pair):
    """Storage has the folder, the ACL and the owner; the owner isn't the one that the ACL's record knows."""
    os.mkdir(MOUNT / "top")
    run(f"setfacl -d -m u:17:rwx {MOUNT}/top")
    settle()
    for number in range(TICK_TRIES):
        made = MOUNT / f"top/{number}"
        if made_within_a_tick(made):
            break
    else:
        pytest.skip("no two calls within one tick")
    sync(made)
    run(f"sync -f {LOWER}")
    status = os.stat(next(pair.after_cuts()) / "top" / made.name)
    assert (status.st_uid, status.st_gid) == (5, 6)


@XFS
def test_folder_that_was_read_below(pair):
    """xfs moves the access time of a folder that is read without Forebay before the cut: its counter didn't rise by that."""
    os.mkdir(MOUNT / "d")
    settle()
    os.mkdir(MOUNT / "d/e")
    write(MOUNT / "d/f", b"f" * 5000)
    time.sleep(3)       # behind the last heartbeat
    before = os.stat(LOWER / "d").st_atime_ns
    assert os.listdir(LOWER / "d") and os.stat(LOWER / "d").st_atime_ns > before
    run(f"sync -f {LOWER}")
    left = next(pair.after_cuts())
    assert (left / "d/f").read_bytes() == b"f" * 5000 and (left / "d/e").is_dir()


@XFS
@BY_THE_CLOCK
@pytest.mark.parametrize("stored", [False, True], ids=["lacking", "stored"])
def test_access_time_to_come(pair, stored):
    """A user has set a folder's access time to one behind the crash, before the next mount or behind it. That is no sign of a
    reader below since the crash: the counter is right."""
    now = time.time()
    for name, ahead in ("d", 3600), ("e", AHEAD):
        os.mkdir(MOUNT / name)
        os.utime(MOUNT / name, (now + ahead, now))
    settle()
    made = [MOUNT / name / "f" for name in "de"]
    for path in made:
        write(path, b"f" * 5000)
    inodes = [os.stat(path).st_ino for path in made]
    if stored:
        run(f"sync -f {LOWER}")
    pair.cut()
    time.sleep(max(0, now + AHEAD + 0.5 - time.time()))
    pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
    assert pair.value("names_replayed") > 0, "the log was emptied: the test shows nothing"
    left = [LEFT / name / "f" for name in "de"]
    assert [path.read_bytes() for path in left] == [b"f" * 5000] * 2
    assert not stored or [os.stat(path).st_ino for path in left] == inodes, "made again"


def test_drained(pair):
    """After forebay drain the file system below has everything, without the cache: also names that only the log has."""
    write(MOUNT / "f", b"f" * 5000)
    run(f"forebay drain {MOUNT}")       # so that the next drain finds no page to write
    os.mkdir(MOUNT / "d")
    os.rename(MOUNT / "f", MOUNT / "d/g")
    sync(MOUNT / "d")
    run(f"forebay drain {MOUNT}")
    pair.cut()
    pair.mount_lower(pair.storage_left, LEFT_LOWER)
    assert (LEFT_LOWER / "d/g").read_bytes() == b"f" * 5000 and not (LEFT_LOWER / "f").exists()


def named_within_a_tick():
    """A file that was made without a name, and written within the same tick of the clock. None: it took longer."""
    tick = next_tick()
    fd = os.open(MOUNT, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.pwrite(fd, b"f" * 5000, 0)
    if os.fstat(fd).st_ctime_ns == tick:
        return fd
    os.close(fd)
    return None


def test_first_name_and_writeback(pair):
    """Pages are written back to a file whose first name only the log has. They are clean when storage has that name."""
    for _ in range(TICK_TRIES):
        fd = named_within_a_tick()
        if fd:
            break
    else:
        pytest.skip("no two calls within one tick")
    run(f"sync -f {LOWER}")     # its blocks are allocated, durably
    linkat(f"/proc/self/fd/{fd}", MOUNT / "f")
    before = counter(pair.cache, "syncs_absorbed")
    os.fsync(fd)
    assert counter(pair.cache, "syncs_absorbed") == before + 1
    drop(fd)
    assert counter(pair.cache, "pages_out_of_sync") == 0
    os.close(fd)
    assert (next(pair.after_cuts(committed=False)) / "f").read_bytes() == b"f" * 5000


@PROJECTS
def test_project_that_is_inherited(pair):
    """Links and special files have their folder's project id, too. The folder takes no name of one with another id, and
    replay can't make one with that id: it would refuse to mount for ever."""
    os.mkdir(MOUNT / "d")
    run(f"chattr -p 7 +P {MOUNT}/d")
    settle()
    os.symlink("target", MOUNT / "d/link")
    os.mkfifo(MOUNT / "d/fifo")
    sync(MOUNT / "d")
    left = next(pair.after_cuts(committed=False))
    assert os.readlink(left / "d/link") == "target" and stat.S_ISFIFO(os.stat(left / "d/fifo").st_mode)


def test_mode_that_is_set_by_an_acl(pair):
    """Right after mkdir, with an ACL that says no more than a mode: to ext4 a change without a counter, and within the same
    tick of the clock without a new ctime."""
    for number in range(20):
        made = MOUNT / f"d{number}"
        tick = next_tick()
        os.mkdir(made)
        os.setxattr(made, "system.posix_acl_access", OWNER_ALONE)
        if os.stat(made).st_ctime_ns == tick:
            break
        time.sleep(3)       # until the log is on again
    else:
        pytest.skip("no two calls within one tick")
    sync(made)
    assert stat.S_IMODE(os.stat(next(pair.after_cuts(committed=False)) / made.name).st_mode) == 0o700


@BOTH
def test_first_name_while_the_log_is_off(pair):
    """A file without a name gets its first one without a record. Storage has the file, so what is synced to PMem later is
    this file's."""
    for number in range(8):
        write(MOUNT / "whiteout", b"w")
        settle()
        fd = os.open(MOUNT, os.O_TMPFILE | os.O_RDWR, 0o600)
        renameat2(MOUNT / "whiteout", MOUNT / "elsewhere", RENAME_WHITEOUT)
        linkat(f"/proc/self/fd/{fd}", MOUNT / f"f{number}")
        os.pwrite(fd, b"a" * 5000, 0)
        os.fsync(fd)
        before = counter(pair.cache, "syncs_absorbed")
        os.pwrite(fd, b"b" * 5000, 0)
        os.fsync(fd)
        assert counter(pair.cache, "syncs_absorbed") == before + 1
        os.close(fd)
        left = next(pair.after_cuts(committed=False))
        assert (left / f"f{number}").read_bytes() == b"b" * 5000
        if pair.value("names_replayed") > 0:
            return
        run(f"umount {LEFT} && umount {LEFT_LOWER}; rm {MOUNT}/whiteout")
        time.sleep(3)       # until the log is on again
    pytest.skip("the log was emptied before the cut each time")

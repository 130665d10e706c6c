# SPDX-License-Identifier: GPL-2.0-only
"""What a cache with a name log is after a power cut that comes right after a call. On emulated devices, a cut is a copy
(test_cuts.py). ext4 below is told not to commit its journal by itself, so a cut leaves storage without the names."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from libc import linkat
from stack import LOWER, MOUNT, counter, run
from test_cuts import LEFT, LEFT_LOWER, Pair
from test_emu import create, module_fixture

emulated_devices = module_fixture
THIRD, THIRD_LOWER = Path("/mnt/third"), Path("/mnt/third-lower")
MOMENTS = 12            # of cuts within one replay


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
        run(f"mount -t forebay -o cache={cache},allow_volatile_cache {lower} {folder}")

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
        self.storage_third = create(f"--size {self.mib}M --track")
        self.cache_third = create(f"--size {self.cache_mib}M --track")
        for folder in (THIRD, THIRD_LOWER):
            folder.mkdir(parents=True, exist_ok=True)

    def cut_pairs(self, seed, *pairs):
        """forebay emu cut, of any pairs of devices."""
        numbers = [f"{_number(one)}:{_number(other)}" for one, other in pairs]
        run(f"forebay emu cut --seed {seed} {' '.join(numbers)}")

    storage_third = cache_third = None


class XfsPair(NamesPair):
    """Over xfs: one that is smaller than mkfs.xfs likes. A copy is mounted beside it, and has the same UUID."""

    mkfs = "mkfs.xfs -fqK --unsupported -d size={mib}m {device}"
    lower_options = "nouuid"

    def __init__(self):
        run("modprobe xfs && sysctl -qw fs.xfs.xfssyncd_centisecs=720000")
        super().__init__()


def _number(device):
    return device[len("/dev/forebay-emu"):]


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
    run(f"sync -f {MOUNT}")


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


def test_replaced_file(pair):
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 2000)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"old" * 1000 and (left / "f.new").read_bytes() == b"new" * 2000
    os.rename(MOUNT / "f.new", MOUNT / "f")
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() in (b"old" * 1000, b"new" * 2000)
    sync(MOUNT)
    for left in pair.after_cuts(committed=False):       # the old file's end has taken the change to storage meanwhile
        assert (left / "f").read_bytes() == b"new" * 2000 and not (left / "f.new").exists()


def test_replaced_by_what_was_not_synced(pair):
    """The rename is made durable by another call: then it must not lead to a file without its data."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 2000, synced=False)
    os.rename(MOUNT / "f.new", MOUNT / "f")
    sync(MOUNT)
    for left in pair.after_cuts(committed=False):       # such a rename is made durable below
        assert (left / "f").read_bytes() == b"new" * 2000


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


def test_attributes(pair):
    write(MOUNT / "f", b"f")
    os.mkdir(MOUNT / "d")
    settle()
    for name in ("f", "d"):
        os.chmod(MOUNT / name, 0o710)
        os.chown(MOUNT / name, 5, 6)
        os.utime(MOUNT / name, ns=(10 ** 18 + 3, 10 ** 18 + 4))
        sync(MOUNT / name)
    for left in pair.after_cuts():
        for name in ("f", "d"):
            status = os.stat(left / name)
            assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o710, 5, 6), name
            assert (status.st_atime_ns, status.st_mtime_ns) == (10 ** 18 + 3, 10 ** 18 + 4), name


def test_attributes_of_a_replaced_file(pair):
    """A file that loses a name to another one, and has a second name, keeps the attributes that were synced."""
    write(MOUNT / "f", b"f")
    os.link(MOUNT / "f", MOUNT / "other")
    settle()
    os.chmod(MOUNT / "f", 0o604)
    sync(MOUNT / "f")
    write(MOUNT / "f.new", b"new")
    os.rename(MOUNT / "f.new", MOUNT / "f")
    sync(MOUNT)
    for left in pair.after_cuts():
        status = os.stat(left / "other")
        assert (stat.S_IMODE(status.st_mode), status.st_nlink) == (0o604, 1)
        assert (left / "f").read_bytes() == b"new" and (left / "other").read_bytes() == b"f"


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


def xattrs_of(path):
    """All user.* and trusted.* attributes."""
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith(("user.", "trusted."))}


def acl_of(path):
    """Lines of getfacl, without those that say whose it is."""
    return {line for line in run(f"getfacl -pnE {path}").splitlines() if line and line[0] != "#"}


def flags_of(path):
    """Letters of lsattr, without those that say how a file is stored."""
    return set(run(f"lsattr -d {path}").split()[0]) - set("-eI")


@BOTH
def test_extended_attributes(pair):
    """Set, changed and removed: of a file and a folder that storage has, and of new ones."""
    write(MOUNT / "f", b"f")
    os.mkdir(MOUNT / "d")
    for name in ("f", "d"):
        os.setxattr(MOUNT / name, "user.goes", b"goes")
        os.setxattr(MOUNT / name, "user.stays", b"stays")
    settle()
    write(MOUNT / "new", b"new")
    os.mkdir(MOUNT / "newd")
    for name in ("f", "d", "new", "newd"):
        os.setxattr(MOUNT / name, "user.number", b"16")
        os.setxattr(MOUNT / name, "user.empty", b"")
        os.setxattr(MOUNT / name, "trusted.long", b"l" * 2000)
        os.setxattr(MOUNT / name, "user.number", b"17")
        if name in ("f", "d"):
            os.removexattr(MOUNT / name, "user.goes")
        sync(MOUNT / name)
    before = os.stat(MOUNT / "f")
    os.setxattr(MOUNT / "f", "user.later", b"not synced")
    expected = {"user.number": b"17", "user.empty": b"", "trusted.long": b"l" * 2000}
    for left in pair.after_cuts():
        for name in ("f", "d", "new", "newd"):
            found = xattrs_of(left / name)
            found.pop("user.later", None)
            assert found == expected | ({"user.stays": b"stays"} if name in ("f", "d") else {}), name
        assert (left / "f").read_bytes() == b"f" and (left / "new").read_bytes() == b"new"
        after = os.stat(left / "f")
        assert after.st_mtime_ns == before.st_mtime_ns
        assert "user.later" in os.listxattr(left / "f") or after.st_ctime_ns == before.st_ctime_ns


@BOTH
def test_acls(pair):
    """Of a file that storage has and of a new one: with a chmod that changes the mask, and one that goes."""
    write(MOUNT / "f", b"f")
    write(MOUNT / "goes", b"goes")
    os.mkdir(MOUNT / "d")
    run(f"setfacl -m u:1000:r {MOUNT}/goes")
    settle()
    write(MOUNT / "new", b"new")
    for name in ("f", "new"):
        run(f"setfacl -m u:1000:rwx,g:1002:r {MOUNT / name}")
        os.chmod(MOUNT / name, 0o735)
        os.chown(MOUNT / name, 5, 6)
        sync(MOUNT / name)
    run(f"setfacl -b {MOUNT}/goes && setfacl -d -m u:1001:rw {MOUNT}/d")
    sync(MOUNT / "goes")
    sync(MOUNT / "d")
    expected = {name: acl_of(MOUNT / name) for name in ("f", "new", "goes", "d")}
    assert "user:1000:rwx" in expected["f"] and "mask::-wx" in expected["f"] and "default:user:1001:rw-" in expected["d"]
    for left in pair.after_cuts():
        assert {name: acl_of(left / name) for name in expected} == expected
        for name in ("f", "new"):
            status = os.stat(left / name)
            assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o735, 5, 6)


@BOTH
def test_inherited(pair):
    """New objects in a folder with a default ACL and a flag; the file's fsync is all that makes them durable."""
    os.mkdir(MOUNT / "top")
    run(f"setfacl -d -m u:1001:rw {MOUNT}/top && chattr +d {MOUNT}/top")
    settle()
    os.mkdir(MOUNT / "top/d")
    write(MOUNT / "top/d/f", b"f" * 5000)
    os.mkfifo(MOUNT / "top/fifo", 0o622)
    sync(MOUNT / "top")
    acls = {name: acl_of(MOUNT / "top" / name) for name in ("d", "d/f", "fifo")}
    assert "default:user:1001:rw-" in acls["d"] and all("user:1001:rw-" in acl for acl in acls.values())
    flags = {name: flags_of(MOUNT / "top" / name) for name in ("d", "d/f")}
    assert "d" in flags["d/f"]
    for left in pair.after_cuts():
        assert {name: acl_of(left / "top" / name) for name in acls} == acls
        assert {name: flags_of(left / "top" / name) for name in flags} == flags
        assert (left / "top/d/f").read_bytes() == b"f" * 5000


@BOTH
def test_flags(pair):
    """Flags of a file and of a folder that storage has, and of new ones, set and cleared."""
    write(MOUNT / "f", b"f")
    os.mkdir(MOUNT / "d")
    run(f"chattr +A {MOUNT}/f {MOUNT}/d")
    settle()
    write(MOUNT / "new", b"new")
    os.mkdir(MOUNT / "newd")
    for name in ("f", "d", "new", "newd"):
        run(f"chattr +d {MOUNT / name} && chattr -A {MOUNT / name}")        # ext4 commits its journal at +S
        sync(MOUNT / name)
    for left in pair.after_cuts():
        for name in ("f", "d", "new", "newd"):
            assert flags_of(left / name) == {"d"}, name


@BOTH
def test_capabilities(pair):
    """One that was set, and one that a write has taken away."""
    for name in ("keeps", "loses"):
        write(MOUNT / name, b"f")
        run(f"setcap cap_net_raw+ep {MOUNT / name}")
    settle()
    write(MOUNT / "new", b"new")
    run(f"setcap cap_net_admin+ep {MOUNT}/new")
    sync(MOUNT / "new")
    with open(MOUNT / "loses", "ab", buffering=0) as file:
        file.write(b"more")
        os.fsync(file.fileno())
    for left in pair.after_cuts():
        assert "cap_net_raw" in run(f"getcap {left}/keeps") and "cap_net_admin" in run(f"getcap {left}/new")
        assert run(f"getcap {left}/loses") == "" and (left / "loses").read_bytes() == b"fmore"


@BOTH
def test_later_attributes_on_storage(pair):
    """A hash of the integrity subsystem isn't in the log: the fsync waits for storage. Then storage has later attributes
    than the log, and keeps them."""
    write(MOUNT / "f", b"f")
    settle()
    os.setxattr(MOUNT / "f", "user.number", b"16")
    sync(MOUNT / "f")
    os.setxattr(MOUNT / "f", "security.ima", b"\4\4" + bytes(32))
    os.setxattr(MOUNT / "f", "user.number", b"17")
    sync(MOUNT / "f")
    for left in pair.after_cuts(committed=False):
        assert os.getxattr(left / "f", "user.number") == b"17" and "security.ima" in os.listxattr(left / "f")


def busy_tree():
    """Something of everything, all of it synced."""
    os.mkdir(MOUNT / "old")
    write(MOUNT / "old/gone", b"gone")
    write(MOUNT / "kept", b"kept")
    settle()
    os.setxattr(MOUNT / "kept", "user.number", b"16")
    os.setxattr(MOUNT / "kept", "user.number", b"17")
    run(f"setfacl -m u:1000:rw {MOUNT}/kept && chattr +d {MOUNT}/kept")
    os.utime(MOUNT / "kept", ns=(10 ** 18 + 3, 10 ** 18 + 4))
    for number in range(8):
        os.makedirs(MOUNT / f"d{number}/e")
        write(MOUNT / f"d{number}/e/f", bytes([number + 1]) * 9000)
        os.setxattr(MOUNT / f"d{number}/e/f", "user.number", b"%d" % number)
        run(f"setfacl -d -m u:{number}:rw {MOUNT}/d{number}")
    os.unlink(MOUNT / "old/gone")
    os.rename(MOUNT / "old", MOUNT / "d3/moved")
    os.rename(MOUNT / "d5", MOUNT / "d4/d5")
    sync(MOUNT)


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
    pair.add_third()        # first: soon after the tree the worker trims the log
    busy_tree()
    pair.cut_pairs(1, (pair.storage, pair.storage_left), (pair.cache, pair.cache_left))
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


def test_cut_while_replay_runs(pair):
    """N4: power fails at some moment of the mount; the next one goes on."""
    pair.add_third()        # first: soon after the tree the worker trims the log
    busy_tree()
    pair.cut_pairs(0, (pair.storage, pair.storage_left), (pair.cache, pair.cache_left))
    for device in (pair.storage_left, pair.cache_left):     # a copy: in a while the worker will have trimmed the log
        run(f"dd if={device} of=/tmp/{_number(device)} bs=1M status=none")
    begin = time.monotonic()
    pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
    seconds, unfinished = time.monotonic() - begin, 0
    assert pair.value("names_replayed") > 0
    for moment in range(MOMENTS):
        run(f"umount {LEFT}; umount {LEFT_LOWER}", False)
        for device in (pair.storage_left, pair.cache_left):
            run(f"dd if=/tmp/{_number(device)} of={device} bs=1M conv=fsync status=none")
        with subprocess.Popen(["sh", "-c", f"mount -o commit=900 {pair.storage_left} {LEFT_LOWER} && mount -t forebay -o "
                               f"cache={pair.cache_left},allow_volatile_cache {LEFT_LOWER} {LEFT}"]) as mounting:
            time.sleep(seconds * (moment + 1) / (MOMENTS + 1))
            pair.cut_pairs(moment, (pair.storage_left, pair.storage_third), (pair.cache_left, pair.cache_third))
            unfinished += mounting.poll() is None
            assert mounting.wait(60) == 0
        pair.mount(pair.storage_third, pair.cache_third, THIRD_LOWER, THIRD)
        check_busy_tree(THIRD)
        assert not list(THIRD_LOWER.glob(".forebay-replay*"))
        run(f"umount {THIRD} && umount {THIRD_LOWER} && e2fsck -fn {pair.storage_third} && forebay check {pair.cache_third}")
    assert unfinished >= MOMENTS // 3, "most cuts came after the mount"


def test_names_that_other_programs_changed(pair):
    """Storage that was changed without Forebay after the cut is not touched; the mount says so, and the way out works."""
    write(MOUNT / "f", b"f")
    pair.cut_pairs(0, (pair.storage, pair.storage_left), (pair.cache, pair.cache_left))
    time.sleep(5)       # behind the last heartbeat: a change before it might be one whose record was lost
    run(f"mount {pair.storage_left} {LEFT_LOWER} && touch {LEFT_LOWER}/foreign && sync -f {LEFT_LOWER}")
    mount = f"mount -t forebay -o cache={pair.cache_left},allow_volatile_cache{{}} {LEFT_LOWER} {LEFT}"
    refused = run(mount.format("") + " 2>&1; dmesg | tail -3", check=False)
    assert not os.path.ismount(LEFT) and "names=discard" in refused, refused
    assert sorted(os.listdir(LEFT_LOWER)) == ["foreign", "lost+found"]
    run(mount.format(",names=discard"))
    write(LEFT / "g", b"g")
    assert sorted(os.listdir(LEFT)) == ["foreign", "g", "lost+found"]

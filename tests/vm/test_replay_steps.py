# SPDX-License-Identifier: GPL-2.0-only
"""Replay of a name log ends before each of its changes, one after the other, as if power had failed there; and again within
the replay that follows. The module has a fault for it (FB_BREAK_REPLAY), so these tests have a boot of their own."""

import os
import random
import stat
from pathlib import Path

import pytest
from conftest import clean_up
from libc import RENAME_EXCHANGE, linkat, renameat2
from names_pair import (GROUP, MASK, NO_ID, OWNER, THIRD, THIRD_LOWER, USER, NamesPair, acl, flags_of, settle, sync, write)
from names_pair import OTHER as OTHERS
from stack import FSCK, MOUNT, counter, create_emulated, fails, run
from test_cuts import LEFT, LEFT_LOWER
from test_emu import module_fixture

emulated_devices = module_fixture
STOP = Path("/sys/module/forebay/parameters/replay_stop")
NEVER = 1000000
TWICE = 40              # pairs of steps
FOURTH, FOURTH_LOWER = Path("/mnt/fourth"), Path("/mnt/fourth-lower")
FOLDERS = {"third": (THIRD_LOWER, THIRD), "fourth": (FOURTH_LOWER, FOURTH)}
TIMES = (10 ** 18 + 3, 10 ** 18 + 4)
OTHER = 1234            # a user
# Made files with one name: content, owner and mode.
ALONE = {"removed": (b"now a file", 7, 0o640), "d/own": (b"d/own", 8, 0o4711), "e2/own": (b"e2/own", 9, 0o604),
         "late/early": (b"late/early", 10, 0o640)}


class StepsPair(NamesPair):
    """What the first cut leaves (left) is never mounted. Copies of it are, in turn: third, fourth."""

    mib, fs = 24, "ext4"

    def __init__(self):
        super().__init__()
        self.third, self.fourth = ((create_emulated(f"--size {self.mib}M --track"), create_emulated(f"--size {self.cache_mib}M --track"))
                                   for _ in FOLDERS)
        for folder in (THIRD, THIRD_LOWER, FOURTH, FOURTH_LOWER):
            folder.mkdir(parents=True, exist_ok=True)

    def devices(self, name):
        """Storage and cache."""
        return (self.storage_left, self.cache_left) if name == "left" else getattr(self, name)

    def copy(self, old, new, seed=0):
        """What a cut leaves of one, as the other."""
        self.cut_pairs(seed, *zip(self.devices(old), self.devices(new)))

    def lower_of(self, name):
        """Mounts its file system below."""
        self.mount_lower(self.devices(name)[0], FOLDERS[name][0])

    def command(self, name):
        """Mounts forebay."""
        lower, folder = FOLDERS[name]
        return f"mount -t forebay -o cache={self.devices(name)[1]},allow_volatile_cache {lower} {folder}"

    def stop_at(self, name, step):
        """Mounts both file systems, but replay ends before that step. False: there are fewer steps."""
        self.lower_of(name)
        STOP.write_text(str(step), encoding="ascii")
        said = run(self.command(name) + " 2>&1 && echo mounted", False)
        STOP.write_text("0", encoding="ascii")
        if "mounted" in said:
            self.umount(name)
            return False
        assert "-125" in said or "Operation canceled" in said, said
        return True

    @staticmethod
    def umount(name):
        """What is mounted of both."""
        lower, folder = FOLDERS[name]
        run((f"umount {folder} && " if os.path.ismount(folder) else "") + f"umount {lower}")

    def complete(self, name, fsck=False, lower=True):
        """Replay goes on to its end, and all is there."""
        if lower:
            self.lower_of(name)
        run(self.command(name))
        check(FOLDERS[name][1])
        self.umount(name)
        if fsck:
            run(FSCK[self.fs].format(device=self.devices(name)[0]) + f" && forebay check {self.devices(name)[1]}")


class XfsStepsPair(StepsPair):
    """The same over xfs."""

    mib, fs, mkfs, lower_options = 32, "xfs", "mkfs.xfs --unsupported -fqK -d size={mib}m {device}", "nouuid"


@pytest.fixture(name="empty_pair", params=[StepsPair, XfsStepsPair], ids=["ext4", "xfs"])
def empty_pair_fixture(request):
    """A fresh pair, mounted."""
    run("modprobe -r forebay; modprobe xfs; sysctl -q fs.xfs.xfssyncd_centisecs=720000")
    run(os.environ["FOREBAY_LOAD"])
    assert STOP.exists(), "the module isn't the one with the fault"
    yield request.param()
    for folder in (THIRD, THIRD_LOWER, FOURTH, FOURTH_LOWER, LEFT, LEFT_LOWER):
        run(f"umount {folder}", False)
    clean_up()
    run("rmmod forebay")


@pytest.fixture(name="pair")
def pair_fixture(empty_pair):
    """A fresh pair with a tree, cut."""
    make()
    empty_pair.cut(0)
    return empty_pair


def make():
    """Changes of all kinds, also in the root directory, all synced, and none of them on storage."""
    for name in ("old", "removed", "e1", "e2"):
        os.mkdir(MOUNT / name)
    for name in ("old/gone", "f", "keep", "e1/one", "e2/two"):
        write(MOUNT / name, name.encode())
    os.link(MOUNT / "keep", MOUNT / "old/replaced")
    settle()
    os.makedirs(MOUNT / "d/sub")
    write(MOUNT / "d/sub/n", b"n" * 9000)
    os.link(MOUNT / "d/sub/n", MOUNT / "n2")
    write(MOUNT / "f.new", b"new")
    os.rename(MOUNT / "f.new", MOUNT / "f")
    os.unlink(MOUNT / "old/gone")
    os.rename(MOUNT / "old", MOUNT / "d/moved")
    os.rmdir(MOUNT / "removed")
    write(MOUNT / "removed", b"now a file")
    renameat2(MOUNT / "e1", MOUNT / "e2", RENAME_EXCHANGE)
    os.chmod(MOUNT / "keep", 0o604)
    os.chown(MOUNT / "keep", 5, 6)
    os.utime(MOUNT / "keep", ns=TIMES)
    os.symlink("target", MOUNT / "s")
    os.symlink("other", MOUNT / "d/s")
    for name, (_, owner, mode) in ALONE.items():
        if name != "removed":
            write(MOUNT / "early", name.encode())
            os.setxattr(MOUNT / "early", "user.name", name.encode())
            os.makedirs((MOUNT / name).parent, exist_ok=True)
            os.rename(MOUNT / "early", MOUNT / name)
        os.chown(MOUNT / name, owner, owner)
        os.chmod(MOUNT / name, mode)
    sync(MOUNT / "keep")
    os.link(MOUNT / "keep", MOUNT / "d/keep")
    write(MOUNT / "new", b"replaces")
    os.rename(MOUNT / "new", MOUNT / "d/moved/replaced")
    sync(MOUNT)


def check(top):
    """As make() left it."""
    assert sorted(set(os.listdir(top)) - {"lost+found"}) == ["d", "e1", "e2", "f", "keep", "late", "n2", "removed", "s"]
    assert sorted(os.listdir(top / "d")) == ["keep", "moved", "own", "s", "sub"]
    assert os.listdir(top / "d/sub") == ["n"]
    assert os.listdir(top / "d/moved") == ["replaced"] and (top / "d/moved/replaced").read_bytes() == b"replaces"
    assert os.stat(top / "keep").st_nlink == 2 and os.stat(top / "keep").st_ino == os.stat(top / "d/keep").st_ino
    assert (top / "n2").read_bytes() == b"n" * 9000 and os.stat(top / "n2").st_ino == os.stat(top / "d/sub/n").st_ino
    assert os.stat(top / "n2").st_nlink == 2 and os.stat(top / "f").st_nlink == 1
    assert (top / "f").read_bytes() == b"new" and (top / "removed").read_bytes() == b"now a file"
    assert (top / "e1/two").read_bytes() == b"e2/two" and (top / "e2/one").read_bytes() == b"e1/one"
    status = os.stat(top / "keep")
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o604, 5, 6)
    assert (status.st_atime_ns, status.st_mtime_ns) == TIMES and (top / "keep").read_bytes() == b"keep"
    assert os.readlink(top / "s") == "target" and os.readlink(top / "d/s") == "other"
    for name, (content, owner, mode) in ALONE.items():
        assert (top / name).read_bytes() == content, name
        status = os.stat(top / name)
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (mode, owner, owner), name
        assert name == "removed" or os.getxattr(top / name, "user.name") == name.encode()


def count(pair, check_all=check):
    """How many steps replay has."""
    pair.copy("left", "third")
    pair.lower_of("third")
    STOP.write_text(str(NEVER), encoding="ascii")
    run(pair.command("third"))
    steps = NEVER - int(STOP.read_text(encoding="ascii"))
    STOP.write_text("0", encoding="ascii")
    check_all(THIRD)
    pair.umount("third")
    assert steps > 60, f"{steps} steps: the worker has trimmed the log before the cut, the machine was too slow"
    return steps


def test_each_step(pair):
    """With all that was done before the step on storage; with what the lower file system has made durable by itself; and
    without a cut, in the same mount of the lower file system."""
    steps = count(pair)
    print(f"{steps} steps")
    for step in range(1, steps + 1):
        pair.copy("left", "third")
        assert pair.stop_at("third", step), step
        if step % 5 == 0:
            pair.copy("third", "fourth", step)
            pair.complete("fourth")
        run(f"sync -f {THIRD_LOWER}")
        pair.copy("third", "fourth")
        pair.complete("fourth", step % 8 == 0)
        if step % 5 == 1:
            pair.complete("third", lower=False)
        else:
            pair.umount("third")
    pair.copy("left", "third")
    assert not pair.stop_at("third", steps + 1)


def test_two_steps(pair):
    """Replay ends twice, at any two steps."""
    steps, dice, second = count(pair), random.Random(1), 0
    for number in range(TWICE):
        pair.copy("left", "third")
        assert pair.stop_at("third", dice.randint(1, steps))
        if number % 4:
            run(f"sync -f {THIRD_LOWER}")
        pair.copy("third", "fourth", number)
        pair.umount("third")
        if pair.stop_at("fourth", dice.randint(1, steps)):
            second += 1
            if number % 3:
                run(f"sync -f {FOURTH_LOWER}")
            pair.copy("fourth", "third", number)
            pair.umount("fourth")
            pair.complete("third", number % 8 == 0)
        else:
            pair.complete("fourth")
    assert second > TWICE // 3, second


def test_folder_that_others_may_write_to(pair):
    """Replay's folder was given away while replay was unfinished: mount doesn't go on with what may be in it."""
    middle = count(pair) // 2
    pair.copy("left", "third")
    assert pair.stop_at("third", middle)
    (folder,) = THIRD_LOWER.glob(".forebay-replay.*")
    for wrong, right in ((f"chown 1234 {folder}", f"chown 0 {folder}"), (f"chmod 777 {folder}", f"chmod 700 {folder}")):
        run(wrong)
        before = sorted(os.listdir(folder))
        said = fails(pair.command("third"))
        assert "isn't as mount has made it" in said and folder.name in said, said
        assert sorted(os.listdir(folder)) == before
        run(right)
    pair.complete("third", lower=False)


def test_file_that_has_its_name(pair):
    """Replay is unfinished, and a user puts another file where a file that was made again has left staging already, with
    its directory. The other may be a link to any file: replay gives it neither attributes nor content."""
    few, many = 1, count(pair)
    while few < many:       # the first step before which all have their names
        middle = (few + many) // 2
        pair.copy("left", "third")
        assert pair.stop_at("third", middle)
        named = all((THIRD_LOWER / name).is_file() for name in ALONE)
        pair.umount("third")
        few, many = (few, middle) if named else (middle + 1, many)
    pair.copy("left", "third")
    assert pair.stop_at("third", few)
    assert not list(THIRD_LOWER.glob(".forebay-replay.*/done"))
    os.unlink(THIRD_LOWER / "d/own")
    write(THIRD_LOWER / "d/own", b"mine", synced=False)
    os.chown(THIRD_LOWER / "d/own", OTHER, OTHER)
    run(pair.command("third"))
    status = os.stat(THIRD / "d/own")
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o640, OTHER, OTHER)
    assert (THIRD / "d/own").read_bytes() == b"mine" and not os.listxattr(THIRD / "d/own")
    assert not list(THIRD_LOWER.glob(".forebay-replay*"))
    pair.umount("third")
    run(FSCK[pair.fs].format(device=pair.devices("third")[0]))


def make_private(pair):
    """Folders that storage lacks, with files of all kinds, each with what its folder or a program gives it. An ACL that a
    program gives to a folder of xfs is durable below, with all that came before. So there, new folders inherit theirs only."""
    named = ((OWNER, 7, NO_ID), (USER, 7, OTHER), (GROUP, 5, NO_ID), (MASK, 7, NO_ID), (OTHERS, 5, NO_ID))
    for name in ("shared", "closed", "heir"):
        os.mkdir(MOUNT / name)
        os.chmod(MOUNT / name, 0o777)
    os.setxattr(MOUNT / "heir", "system.posix_acl_default", acl(*named))
    settle()
    barriers = counter(pair.cache, "names_barriers")
    os.mkdir(MOUNT / "heir/new")
    os.rename(MOUNT / "heir/new", MOUNT / "new")
    os.chown(MOUNT / "new", 7, 8)
    os.mkdir(MOUNT / "new/sub")
    os.mkdir(MOUNT / "late")
    os.mkdir(MOUNT / "lost")
    for number, name in enumerate(("new/secret", "new/open", "new/caps", "new/suid", "new/sub/deep", "late/own", "lost/out",
                                   "lost/plain")):
        write(MOUNT / name, name.encode() * 999)
        os.chown(MOUNT / name, 20 + number, 40 + number)
        os.chmod(MOUNT / name, 0o600)
    os.chmod(MOUNT / "new/open", 0o664)
    os.chmod(MOUNT / "new/caps", 0o755)
    os.setxattr(MOUNT / "new/caps", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
    os.chmod(MOUNT / "new/suid", 0o6711)
    run(f"chattr +A {MOUNT}/late/own")
    os.mkfifo(MOUNT / "new/fifo")
    os.mknod(MOUNT / "late/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.symlink("x" * 200, MOUNT / "new/link")
    os.link(MOUNT / "new/secret", MOUNT / "shared/secret")
    os.rename(MOUNT / "lost/out", MOUNT / "shared/out")
    os.rename(MOUNT / "lost/plain", MOUNT / "late/out")
    os.rmdir(MOUNT / "lost")
    fd = os.open(MOUNT / "shared", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"nameless")
    linkat(f"/proc/self/fd/{fd}", MOUNT / "late/nameless")
    os.close(fd)
    if pair.fs == "ext4":
        os.setxattr(MOUNT / "late", "system.posix_acl_default", acl(*named))      # too late for its files
    # Open folders that were closed before there was a file in them.
    os.chmod(MOUNT / "closed", 0o700)
    os.mkdir(MOUNT / "named")
    if pair.fs == "ext4":
        os.setxattr(MOUNT / "named", "system.posix_acl_access", acl(*named))
        os.removexattr(MOUNT / "named", "system.posix_acl_access")
    os.chmod(MOUNT / "named", 0o700)
    for name in ("closed", "named"):
        write(MOUNT / name / "own", b"private")
        os.chmod(MOUNT / name / "own", 0o644)
    sync(MOUNT)
    for name in ("new/secret", "late/nameless"):
        sync(MOUNT / name)
    assert counter(pair.cache, "names_barriers") == barriers, "storage has what was done before a barrier: the test shows little"


def private_tree(top):
    """What each object is, by its name: of a folder without its times."""
    tree = {}
    for path in top.rglob("*"):
        status, name = os.lstat(path), str(path.relative_to(top))
        if name.startswith((".forebay", "lost+found")):
            continue
        tree[name] = [status.st_mode, status.st_uid, status.st_gid, status.st_nlink * (not path.is_dir()), status.st_rdev]
        if path.is_symlink():
            tree[name] += [os.readlink(path), status.st_mtime_ns]
            continue
        tree[name].append({xattr: os.getxattr(path, xattr) for xattr in os.listxattr(path)})
        if stat.S_ISREG(status.st_mode):
            tree[name] += [path.read_bytes(), status.st_mtime_ns, name == "late/own" and flags_of(path)]
    return tree


def read_by(user, top):
    """The names of the files that a user may read."""
    found = run(f"setpriv --reuid {user} --regid {user} --clear-groups find {top} ! -type d -readable -printf '%P\\n'", False)
    return {name for name in found.splitlines() if not name.startswith("find:")}


def test_other_users(empty_pair):
    """Replay ends before any of its steps. No user can read below what he can't read above in the end, also not because its
    folder isn't closed yet; and not a file that hasn't got its owner, mode, ACL and content. Replay goes on, and files haven't
    inherited anything in between."""
    pair = empty_pair
    make_private(pair)
    pair.cut(0)
    right = private_tree(MOUNT)
    assert len(right) == 22, sorted(right)
    allowed = {user: read_by(user, MOUNT) for user in (OTHER, 20)}
    assert "shared/secret" in allowed[20] and not {"closed/own", "named/own"} & (allowed[OTHER] | allowed[20])
    pair.lower_options += ",noatime"        # the test reads below

    def complete(top):
        assert private_tree(top) == right

    steps, partly = count(pair, complete), 0
    for step in range(1, steps + 1):
        pair.copy("left", "third")
        assert pair.stop_at("third", step), step
        there = private_tree(THIRD_LOWER)
        for user, right_names in allowed.items():
            names = read_by(user, THIRD_LOWER)
            assert names <= right_names, (step, names - right_names)
            for name in names:
                there[name][3] = right[name][3]     # it may have more names in replay's folder, or is to get more
                assert there[name] == right[name], (step, name)
        partly += (THIRD_LOWER / "shared/out").exists()
        if step % 4 == 1:
            run(f"sync -f {THIRD_LOWER}")
            pair.copy("third", "fourth")
            pair.lower_of("fourth")
            run(pair.command("fourth"))
            complete(FOURTH)
            pair.umount("fourth")
        elif step % 4 == 3:
            run(pair.command("third"))
            complete(THIRD)
        pair.umount("third")
    assert partly > 5, partly

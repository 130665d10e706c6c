# SPDX-License-Identifier: GPL-2.0-only
"""Mount replays a name log in a hostile or full lower directory: names that look like replay's own, no space, no inodes, a
user's quota. As in names_pair.py, a cut is a copy."""

import os
import shutil
import time
from pathlib import Path

import pytest
from conftest import clean_up
from mapped import DEBUG
from names_pair import NamesPair, flags_of, settle, sync, write
from other_user import as_user
from stack import FSCK, MKFS, MOUNT, counter, fails, run
from test_cuts import LEFT, LEFT_LOWER
from test_emu import module_fixture

emulated_devices = module_fixture
USER = 1234
FILES = 40
BEAT = 4                # s: more than a heartbeat speaks of
CONTENT = 5 * 4096 + 17


class XfsPair(NamesPair):
    """xfs below, which writes its log late."""

    mib, mkfs = 64, "mkfs.xfs --unsupported -fqK -d size={mib}m {device}"
    lower_options = "nouuid,usrquota"


class Ext4Pair(NamesPair):
    """ext4 with quota, and few inodes."""

    mkfs = MKFS["ext4"] + " && tune2fs -O quota -Q usrquota {device}"
    lower_options = "commit=900,usrquota"


@pytest.fixture(name="pair", params=[Ext4Pair, XfsPair], ids=["ext4", "xfs"])
def pair_fixture(request):
    """A fresh pair of file systems."""
    run("modprobe xfs; sysctl -q fs.xfs.xfssyncd_centisecs=720000")
    yield request.param()
    for folder in (LEFT, LEFT_LOWER):
        run(f"umount {folder}", False)
    clean_up()


def content(number):
    """Of a file of the tree."""
    return bytes([number + 1]) * CONTENT


def make_tree(top=MOUNT):
    """Files in two new folders, one of which moves, all synced; storage has none of them."""
    os.mkdir(top / "a")
    os.mkdir(top / "b")
    for number in range(FILES):
        write(top / f"{'ab'[number % 2]}/f{number}", content(number))
    os.rename(top / "b", top / "a/b")
    sync(top)


def check_tree(top):
    """As make_tree() left it."""
    for number in range(FILES):
        assert (top / f"a/{'b/' if number % 2 else ''}f{number}").read_bytes() == content(number), number
    assert len(os.listdir(top / "a")) == FILES // 2 + 1 and len(os.listdir(top / "a/b")) == FILES // 2
    assert not list(top.glob(".forebay-replay*"))


def cut(pair):
    """What is left, with the lower file system mounted."""
    pair.cut(0)
    pair.mount_lower(pair.storage_left, LEFT_LOWER)


def mount_command(pair, options=""):
    """Mounts forebay on what is left."""
    return f"mount -t forebay -o cache={pair.cache_left},allow_volatile_cache{options} {LEFT_LOWER} {LEFT}"


def umount_left():
    """Both."""
    run(f"umount {LEFT} && umount {LEFT_LOWER}")


def fsck(pair):
    """Unmounts what is left; it must be in order."""
    umount_left()
    fs = "xfs" if isinstance(pair, XfsPair) else "ext4"
    run(FSCK[fs].format(device=pair.storage_left) + f" && forebay check {pair.cache_left}")


def squat_in_a_folder():
    """Names as replay's own folder has them."""
    os.mkdir(".forebay-replay")
    os.chdir(".forebay-replay")
    os.symlink("x", "log")
    os.symlink("done", "done")
    Path("next").write_text("squat\n", encoding="ascii")
    os.mkdir("0000000000000001")
    os.symlink("01:00", "0000000000000001.at")


SQUATTERS = {
    "file": lambda: Path(".forebay-replay").write_text("squat\n", encoding="ascii"),
    "folder": squat_in_a_folder,
    "link": lambda: os.symlink("/etc", ".forebay-replay"),
    # A folder of root's, with a file whose name looks like replay's.
    "moved": lambda: os.rename("of-root", ".forebay-replay"),
}


@pytest.mark.parametrize("pair", [Ext4Pair], indirect=True, ids=["ext4"])
@pytest.mark.parametrize("settled", [False, True], ids=["logged", "stored"])
@pytest.mark.parametrize("kind", SQUATTERS)
def test_squatters(pair, kind, settled):
    """Any user may make names in a folder that all may write to: none of them keeps mount from replaying, and none goes."""
    os.chmod(MOUNT, 0o777)
    os.mkdir(MOUNT / "of-root")
    write(MOUNT / "of-root/deadbeef", b"of root")
    settle()

    def squat():
        """Without programs: many take longer than the log has its records."""
        os.chdir(MOUNT)
        SQUATTERS[kind]()

    as_user(USER, squat)
    if settled:
        settle()
    write(MOUNT / "f", b"f")
    sync(MOUNT)
    cut(pair)
    run(mount_command(pair))
    assert pair.value("names_replayed") > 0
    assert (LEFT / "f").read_bytes() == b"f"
    squatter = LEFT / ".forebay-replay"
    if kind == "file":
        assert os.stat(squatter).st_uid == USER
    elif kind == "folder":
        assert len(os.listdir(squatter)) == 5 and os.stat(squatter).st_uid == os.stat(squatter / "next").st_uid == USER
    elif kind == "link":
        assert os.readlink(squatter) == "/etc"
    else:
        assert (squatter / "deadbeef").read_bytes() == b"of root" and not (LEFT / "of-root").exists()
    assert [path.name for path in LEFT_LOWER.glob("*forebay-replay*")] == [".forebay-replay"]
    fsck(pair)


def fill(path):
    """Makes a file longer until not one block is free."""
    for size in ("64k", "4k", "4k"):
        run(f"dd if=/dev/zero bs={size} status=none >>{path}; sync -f {path}", False)
    free = os.statvfs(path).f_bfree
    assert free < 400, f"{free} blocks are free"


def test_no_space(pair):
    """The lower file system is full when replay begins, and gets space bit by bit, with cuts in between: nothing is lost."""
    pair.add_third()
    write(MOUNT / "filler", b"f")
    settle()
    make_tree()
    cut(pair)
    filler = LEFT_LOWER / "filler"
    fill(filler)
    refusals = []
    while True:
        if len(refusals) % 3 == 1:          # power fails after an attempt
            pair.cut_pairs(len(refusals), (pair.storage_left, pair.storage_third), (pair.cache_left, pair.cache_third))
            run(f"umount {LEFT_LOWER}")
            pair.cut_pairs(0, (pair.storage_third, pair.storage_left), (pair.cache_third, pair.cache_left))
            pair.mount_lower(pair.storage_left, LEFT_LOWER)
        if not run(mount_command(pair) + " >/dev/null 2>&1 || echo failed", False):
            break
        refusals.append(fails(mount_command(pair)))
        assert "no space" in refusals[-1] and "then mount again" in refusals[-1], refusals[-1]
        assert len(refusals) < 60
        os.truncate(filler, os.stat(filler).st_size - 64 * 1024)
        run(f"sync -f {filler}")
    # The debug kernel takes more than the 10 s to the cut after which the log is trimmed.
    assert DEBUG or len(refusals) > 3, "there was space: the test shows nothing"
    assert DEBUG or any("f1" in text for text in refusals), refusals
    check_tree(LEFT)
    fsck(pair)


@pytest.mark.parametrize("pair", [Ext4Pair], ids=["ext4"], indirect=True)     # xfs makes inodes of free space
def test_no_inodes(pair):
    """The same with inodes: some are made free by deleting files of a folder that the log doesn't know."""
    os.mkdir(MOUNT / "other")
    settle()
    make_tree()
    cut(pair)
    other = LEFT_LOWER / "other"
    run(f"cd {other} && seq 100000 | xargs touch", False)
    assert os.statvfs(other).f_ffree == 0
    said = fails(mount_command(pair))
    assert "inode" in said, said
    shutil.rmtree(other)
    run(mount_command(pair))
    check_tree(LEFT)
    fsck(pair)


def open_to_user():
    """The user may write to the root, and has a file there, so that the quota knows the user."""
    os.chmod(MOUNT, 0o777)
    write(MOUNT / "first", b"x")
    os.chown(MOUNT / "first", USER, USER)
    settle()


def test_quota(pair):
    """A user's hard limit doesn't keep mount from giving the user back what was acknowledged."""
    open_to_user()
    make_tree()
    for number in range(FILES):
        path = MOUNT / f"a/{'b/' if number % 2 else ''}f{number}"
        os.chown(path, USER, USER)
        sync(path)
    cut(pair)
    run(f"setquota -u {USER} 8 16 2 3 {LEFT_LOWER}")
    run(mount_command(pair))
    assert pair.value("names_replayed") > 0
    check_tree(LEFT)
    assert {os.stat(path).st_uid for path in (LEFT / "a/b").iterdir()} == {USER}
    as_left = f"setpriv --reuid {USER} --regid {USER} --clear-groups sh -c"
    assert run(f"{as_left} 'echo more >{LEFT}/more'", False), "the limit is not in force"
    fsck(pair)


def test_quota_of_a_mounter_without_rights(pair):
    """A mounter without CAP_SYS_RESOURCE is told whose limit it is on ext4, and nothing is lost."""
    open_to_user()
    write(MOUNT / "limited", b"l" * CONTENT)
    os.chown(MOUNT / "limited", USER, USER)
    sync(MOUNT / "limited")
    cut(pair)
    run(f"setquota -u {USER} 8 16 2 1 {LEFT_LOWER}")
    limited = "capsh --drop=cap_sys_resource -- -c '" + mount_command(pair) + "'"
    if isinstance(pair, XfsPair):
        run(limited)        # xfs asks for another capability
    else:
        said = fails(limited)
        assert "quota" in said and "limited" in said and str(USER) in said, said
        run(f"setquota -u {USER} 0 0 0 0 {LEFT_LOWER} && {limited}")
    assert (LEFT / "limited").read_bytes() == b"l" * CONTENT and os.stat(LEFT / "limited").st_uid == USER
    fsck(pair)




@pytest.mark.parametrize("flag", ["i", "a"])
def test_root_that_must_not_change(pair, flag):
    """Its flag is on storage, and the log has changes in folders below it. Replay leaves the flag alone."""
    os.mkdir(MOUNT / "d")
    run(f"chattr +{flag} {MOUNT}")
    settle()
    time.sleep(BEAT)        # the log is on
    make_tree(MOUNT / "d")
    mtime = os.stat(MOUNT).st_mtime_ns
    cut(pair)
    run(f"chattr -{flag} {MOUNT}")
    run(mount_command(pair))
    assert int(counter(pair.cache_left, "names_replayed")) > 0, "the log was emptied: the test shows nothing"
    check_tree(LEFT / "d")
    assert os.stat(LEFT).st_mtime_ns == mtime and flag in flags_of(LEFT) and not list(LEFT.glob(".forebay-replay*"))
    assert fails(f"touch {LEFT}/x{'; rm -r ' + str(LEFT) + '/d' if flag == 'a' else ''}")
    run(f"chattr -{flag} {LEFT} {LEFT_LOWER}")
    fsck(pair)


def test_file_that_must_not_change(pair):
    """Another program has made it immutable after the cut: mount says what is in the way, and goes on when it isn't."""
    write(MOUNT / "f", b"f")
    settle()
    os.rename(MOUNT / "f", MOUNT / "g")
    sync(MOUNT)
    cut(pair)
    run(f"chattr +i {LEFT_LOWER}/f")
    refused = fails(mount_command(pair))
    assert "'g'" in refused and "lsattr" in refused and not os.path.ismount(LEFT), refused
    run(f"chattr -i {LEFT_LOWER}/f && {mount_command(pair)}")
    assert (LEFT / "g").read_bytes() == b"f" and not (LEFT / "f").exists()
    fsck(pair)

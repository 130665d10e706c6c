# SPDX-License-Identifier: GPL-2.0-only
"""A cache with a name log: sync calls that owe names stay off storage, and nothing else changes. test_names_cuts.py has
what a power cut leaves."""

import os
import stat
import time

import pytest
from clock import next_tick
from libc import RENAME_EXCHANGE, linkat, renameat2, syncfs
from stack import LOWER, MOUNT, PAGE, drop_caches, read_mapped, run

BOTH = pytest.mark.parametrize("stack", [{"fs": "ext4", "names": "1M"}, {"fs": "xfs", "names": "1M"}], indirect=True,
                               ids=["ext4", "xfs"])
EXT4 = pytest.mark.parametrize("stack", [{"names": "1M"}], indirect=True, ids=["ext4"])
TINY = pytest.mark.parametrize("stack", [{"fs": "ext4", "names": "64K"}, {"fs": "xfs", "names": "64K"}], indirect=True,
                               ids=["ext4", "xfs"])
ON_AGAIN = 30           # seconds: the worker tries every 5


def sync(path):
    """fsync of a file or folder, by a descriptor of its own."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def sync_all():
    """syncfs."""
    fd = os.open(MOUNT, os.O_RDONLY)
    syncfs(fd)
    os.close(fd)


def write(path, data=b"data", synced=True, later=False):
    """Makes or overwrites a file, with data a tick later if wanted. After a change that moved ctime alone, as xfs's of an ACL
    that a new file inherits, a write in the same tick has a time that a record can't say, and would go below."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
    if later:
        next_tick()
    os.write(fd, data)
    if synced:
        os.fsync(fd)
    os.close(fd)


# What programs do: each gets an empty folder, and returns a function that makes the sync calls that are counted, with
# their number, and one that checks the outcome in a folder, above or below.

def create(top):
    """A new file."""
    def act():
        write(top / "f", b"c" * PAGE)
    return act, 1, lambda folder: read_mapped(folder / "f") == b"c" * PAGE


def maildir(top):
    """A mail is written in tmp/ and moved to new/."""
    for name in ("tmp", "new"):
        os.mkdir(top / name)
    sync(top)

    def act():
        write(top / "tmp/m", b"mail" * 600)
        os.rename(top / "tmp/m", top / "new/m")
        sync(top / "new")
    return act, 2, lambda folder: os.listdir(folder / "tmp") == [] and read_mapped(folder / "new/m") == b"mail" * 600


def replace(top):
    """Atomic replacement."""
    write(top / "f", b"old" * 1000)
    sync(top)

    def act():
        write(top / "f.new", b"new" * 100)
        os.rename(top / "f.new", top / "f")
        sync(top)
    return act, 2, lambda folder: os.listdir(folder) == ["f"] and read_mapped(folder / "f") == b"new" * 100


def journal(top):
    """SQLite's rollback journal, which is deleted."""
    write(top / "db", bytes(4 * PAGE))
    sync(top)

    def act():
        write(top / "db-journal", b"j" * 600)
        sync(top)
        fd = os.open(top / "db", os.O_RDWR)
        os.pwrite(fd, b"d" * PAGE, PAGE)
        os.fdatasync(fd)
        os.close(fd)
        os.unlink(top / "db-journal")
        sync(top)
    return act, 4, lambda folder: os.listdir(folder) == ["db"] and read_mapped(folder / "db")[PAGE:2 * PAGE] == b"d" * PAGE


def unlink(top):
    """A file goes."""
    write(top / "f")
    sync(top)

    def act():
        os.unlink(top / "f")
        sync(top)
    return act, 1, lambda folder: os.listdir(folder) == []


def attributes(top):
    """chmod, chown and utimes of a file."""
    write(top / "f")

    def act():
        os.chmod(top / "f", 0o751)
        sync(top / "f")
        os.chown(top / "f", 12, 34)
        sync(top / "f")
        os.utime(top / "f", ns=(10 ** 18 + 1, 10 ** 18 + 2))
        sync(top / "f")

    def check(folder):
        status = os.stat(folder / "f")
        return (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns) == (0o751, 12, 34, 10 ** 18 + 2)
    return act, 3, check


def folders(top):
    """A folder, one in it, a file there; then they move."""
    def act():
        os.mkdir(top / "a", 0o710)
        os.mkdir(top / "a/b")
        write(top / "a/b/f")
        os.rename(top / "a/b", top / "c")
        sync(top)
        os.rmdir(top / "a")
        sync(top)
    return act, 3, lambda folder: os.listdir(folder) == ["c"] and read_mapped(folder / "c/f") == b"data"


def links(top):
    """A hard link, a symbolic link, an exchange, a special file."""
    write(top / "f", b"one")
    write(top / "g", b"other")

    def act():
        os.link(top / "f", top / "hard")
        sync(top / "f")
        os.symlink("f" * 100, top / "soft")
        os.mkfifo(top / "fifo")
        renameat2(top / "f", top / "g", RENAME_EXCHANGE)
        sync(top)
    return act, 2, lambda folder: (read_mapped(folder / "g") == b"one" == read_mapped(folder / "hard") and
                                   read_mapped(folder / "f") == b"other" and os.readlink(folder / "soft") == "f" * 100 and
                                   stat.S_ISFIFO(os.lstat(folder / "fifo").st_mode))


def nameless(top):
    """O_TMPFILE that gets a name."""
    def act():
        fd = os.open(top, os.O_TMPFILE | os.O_RDWR, 0o600)
        linkat(f"/proc/self/fd/{fd}", top / "f")
        next_tick()                     # as for write()
        os.write(fd, b"nameless")
        os.fsync(fd)
        os.close(fd)
    return act, 1, lambda folder: read_mapped(folder / "f") == b"nameless"


def holds_folders():
    """Whether the log holds extended attributes and ACLs of folders. Over xfs it doesn't (docs/semantics.md)."""
    return run(f"stat -fc %T {LOWER}").strip() != "xfs"


def xattrs(top):
    """Extended attributes of a file and of a folder: set, changed, removed, and set to what they are."""
    write(top / "f")
    os.mkdir(top / "d")
    names = ("f", "d") if holds_folders() else ("f",)
    for name in names:
        os.setxattr(top / name, "user.goes", b"goes")

    def act():
        for name in names:
            os.setxattr(top / name, "user.number", b"16")
            sync(top / name)
            os.setxattr(top / name, "user.number", b"17")
            os.setxattr(top / name, "user.empty", b"")
            os.setxattr(top / name, "trusted.long", b"l" * 2000)
            sync(top / name)
            os.removexattr(top / name, "user.goes")
            sync(top / name)
            os.setxattr(top / name, "user.number", b"17")
            sync(top / name)

    def check(folder):
        return all((os.getxattr(folder / name, "user.number"), os.getxattr(folder / name, "user.empty"),
                    os.getxattr(folder / name, "trusted.long"), "user.goes" in os.listxattr(folder / name)) ==
                   (b"17", b"", b"l" * 2000, False) for name in names)
    return act, 4 * len(names), check


def acls(top):
    """An ACL, a chmod that changes its mask, a default ACL, and one that goes."""
    for name in ("f", "goes"):
        write(top / name)
    run(f"setfacl -m u:1000:r {top}/goes")
    if not holds_folders():
        run(f"setfacl -d -m u:1001:rw {top}")

    def act():
        run(f"setfacl -m u:1000:rwx {top}/f")
        sync(top / "f")
        os.chmod(top / "f", 0o705)
        sync(top / "f")
        if holds_folders():
            run(f"setfacl -d -m u:1001:rw {top}")
        sync(top)
        run(f"setfacl -b {top}/goes")
        sync(top / "goes")

    def check(folder):
        acl = run(f"getfacl -pn {folder}/f")
        return ("user:1000:rwx" in acl and "mask::---" in acl and "default:user:1001:rw-" in run(f"getfacl -pn {folder}") and
                "user:1000" not in run(f"getfacl -pn {folder}/goes"))
    return act, 4, check


def inherited(top):
    """A file, a folder, and a file in it, in a folder with a default ACL and a flag."""
    run(f"setfacl -d -m u:1001:rw {top} && chattr +d {top}")

    def act():
        write(top / "f", later=True)
        os.mkdir(top / "d")
        write(top / "d/g", later=True)
        sync(top)

    def check(folder):
        return ("default:user:1001:rw-" in run(f"getfacl -pn {folder}/d") and
                all("user:1001:rw-" in run(f"getfacl -pn {folder / name}") and
                    "d" in run(f"lsattr -d {folder / name}").split()[0] for name in ("f", "d", "d/g")))
    return act, 3, check


def flags(top):
    """Flags of a file and of a folder, set and cleared."""
    for name in ("f", "d"):
        os.mkdir(top / name) if name == "d" else write(top / name)
        run(f"chattr +A {top / name}")

    def act():
        for name in ("f", "d"):
            run(f"chattr +d {top / name}")
            sync(top / name)
            run(f"chattr -A {top / name}")
            sync(top / name)

    def check(folder):
        return all(("d" in found, "A" in found) == (True, False)
                   for found in (run(f"lsattr -d {folder / name}").split()[0] for name in ("f", "d")))
    return act, 4, check


PROGRAMS = (create, maildir, replace, journal, unlink, attributes, folders, links, nameless, xattrs, acls, inherited, flags)


def counters(stack):
    """Of sync calls, in PMem and below, and of what the log had to do."""
    return [stack.value(name) for name in ("syncs_absorbed", "syncs_lower", "names_barriers", "names_switched_off")]


def state(stack):
    """Of the log."""
    return (stack.sysfs / "names_state").read_text(encoding="ascii").strip()


def await_on(stack):
    """The log is on again, some time after it was switched off."""
    deadline = time.monotonic() + ON_AGAIN
    while state(stack) != "on":
        assert time.monotonic() < deadline, state(stack)
        time.sleep(0.1)


def log_is_empty(stack):
    """What the command says of the log, unmounted: that it holds nothing."""
    said = run(f"forebay check {stack.cache}")
    return "name log" in said and "empty" in said


@BOTH
def test_sync_calls_stay_in_pmem(stack):
    """Each program's sync calls are answered by the log; then everything is below after unmounting, and stays."""
    assert state(stack) == "on"
    checks = {}
    for program in PROGRAMS:
        top = MOUNT / program.__name__
        os.mkdir(top)
        act, syncs, checks[program.__name__] = program(top)
        sync_all()
        absorbed, below, barriers, off = counters(stack)
        records = stack.value("names_recorded")
        act()
        assert counters(stack) == [absorbed + syncs, below, barriers, off], program.__name__
        assert stack.value("names_recorded") > records, program.__name__
        assert checks[program.__name__](top), program.__name__
    stack.umount()
    assert log_is_empty(stack)
    for name, check in checks.items():
        assert check(LOWER / name), name
    stack.fsck()
    stack.mount()
    assert state(stack) == "on" and stack.value("names_replayed") == 0
    for name, check in checks.items():
        assert check(MOUNT / name), name


@EXT4
def test_status_tells_of_the_log(stack):
    """Mounted and not."""
    values = stack.status()[0]
    assert values["names_size"] > 900 << 10
    write(MOUNT / "f")
    assert stack.value("names_recorded") >= 1 and stack.value("names_used") > 0
    assert "name" in run(f"forebay status {MOUNT}")
    stack.umount()
    values = stack.status()[0]
    assert values["names_size"] > 900 << 10 and values.get("names_records", 0) == 0


def ima(path):
    """A hash of the integrity subsystem: of SHA-256, with zeros."""
    os.setxattr(path, "security.ima", b"\4\4" + bytes(32))


def append_only(path):
    """chattr +a."""
    run(f"chattr +a {path}")


@BOTH
@pytest.mark.parametrize("change", [ima, append_only])
def test_what_the_log_cannot_hold_goes_below(stack, change):
    """The next fsync goes to storage, and later ones are answered by the log again."""
    write(MOUNT / "f")
    below = stack.value("syncs_lower")
    change(MOUNT / "f")
    sync(MOUNT / "f")
    assert stack.value("syncs_lower") == below + 1
    drop_caches()
    await_on(stack)
    below, absorbed = stack.value("syncs_lower"), stack.value("syncs_absorbed")
    write(MOUNT / "g")
    assert (stack.value("syncs_lower"), stack.value("syncs_absorbed")) == (below, absorbed + 1)
    stack.umount()
    assert "security.ima" in os.listxattr(LOWER / "f") or "a" in run(f"lsattr {LOWER}/f").split()[0]
    run(f"chattr -a {LOWER}/f")


@BOTH
def test_a_write_takes_capabilities_away(stack):
    """That is a change of its own, with a record. The fsync stays in PMem, unless the write came within the tick of that change
    (fs/page/times.c)."""
    write(MOUNT / "f")
    run(f"setcap cap_net_raw+ep {MOUNT}/f")
    sync(MOUNT / "f")
    absorbed, below, barriers, off = counters(stack)
    records = stack.value("names_recorded")
    with open(MOUNT / "f", "ab", buffering=0) as file:
        file.write(b"more")
        os.fsync(file.fileno())
    assert counters(stack) in ([absorbed + 1, below, barriers, off], [absorbed, below + 1, barriers, off])
    assert stack.value("names_recorded") > records and "security.capability" not in os.listxattr(MOUNT / "f")


@TINY
def test_log_that_is_too_small(stack):
    """Thousands of changes that are not synced fill 64 KiB: none fails, none is lost, and syncs work all the time."""
    os.mkdir(MOUNT / "d")
    for number in range(3000):
        write(MOUNT / f"d/{number}", b"%d" % number, synced=number % 100 == 99)
        if number % 3 == 0:
            os.rename(MOUNT / f"d/{number}", MOUNT / f"d/renamed-{number}")
    sync(MOUNT / "d")
    await_on(stack)
    absorbed = stack.value("syncs_absorbed")
    for number in range(5):     # measured costs may send some of them below
        write(MOUNT / f"last{number}")
    assert stack.value("syncs_absorbed") > absorbed, "the log serves again"
    stack.umount()
    assert log_is_empty(stack)
    for number in range(3000):
        path = LOWER / (f"d/renamed-{number}" if number % 3 == 0 else f"d/{number}")
        assert read_mapped(path) == b"%d" % number
    assert len(os.listdir(LOWER / "d")) == 3000


@EXT4
def test_freezing_empties_the_log(stack):
    """N11: a snapshot of the frozen lower file system has everything."""
    write(MOUNT / "f")
    assert stack.value("names_used") > 0
    run(f"fsfreeze -f {MOUNT}")
    try:
        assert stack.value("names_used") == 0
    finally:
        run(f"fsfreeze -u {MOUNT}")
    write(MOUNT / "g")


@EXT4
def test_syncfs_and_the_workers_trim(stack):
    """Records leave the log when storage has their changes: at a syncfs, and after a while by themselves."""
    write(MOUNT / "f")
    sync_all()
    assert stack.value("names_used") == 0
    write(MOUNT / "g")
    deadline = time.monotonic() + 2 * ON_AGAIN
    while stack.value("names_used"):
        assert time.monotonic() < deadline, "nothing trims the log"
        time.sleep(0.5)


def test_cache_without_a_log(stack):
    """The default: as before, a new name's sync goes below."""
    assert state(stack) == "none"
    below = stack.value("syncs_lower")
    write(MOUNT / "f")
    assert stack.value("syncs_lower") == below + 1


@pytest.mark.parametrize("stack", [{"fs": "btrfs", "names": "1M"}], indirect=True, ids=["btrfs"])
def test_where_the_premise_does_not_hold(stack):
    """N8: the log is off, status says why, and syncs go below."""
    assert state(stack).startswith("unfit: ")
    below = stack.value("syncs_lower")
    write(MOUNT / "f")
    assert stack.value("syncs_lower") == below + 1

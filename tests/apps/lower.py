# SPDX-License-Identifier: GPL-2.0-only
"""The lower file systems, forebay over one of them, and what must be true when it is unmounted."""

import subprocess
from pathlib import Path

import tree
from place import Failure, call, expect

DISK, PMEM = "/dev/nvme0n1", "/dev/pmem0"
CACHE = PMEM
LOWER, TOP = Path("/mnt/lower"), Path("/mnt/forebay")
UNDER, PLAIN = LOWER / "under", LOWER / "plain"

MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-b", "4096"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}
CHECK = {"ext4": ["e2fsck", "-fn"], "xfs": ["xfs_repair", "-n"], "btrfs": ["btrfs", "check"]}


def use_only(size):
    """Makes a cache of so many bytes, smaller than a namespace can be: a partition that isn't written to
    the device."""
    global CACHE
    call("addpart", PMEM, 1, 0, size // 512)
    CACHE = f"{PMEM}p1"


def make(fs):
    call("modprobe", fs)
    call(*MAKE[fs], DISK)
    call("forebay", "format", "--force", CACHE)
    mount_lower(fs)
    for folder in (UNDER, PLAIN):
        folder.mkdir()
        folder.chmod(0o755)
    call("umount", LOWER)


def mount_lower(fs):
    LOWER.mkdir(exist_ok=True)
    call("mount", "-t", fs, DISK, LOWER)


def mount(fs):
    mount_lower(fs)
    call("modprobe", "forebay")
    TOP.mkdir(exist_ok=True)
    call("mount", "-t", "forebay", "-o", f"cache={CACHE}", UNDER, TOP)


def counters():
    folder = Path("/sys/fs/forebay", Path(CACHE).name)
    found = {}
    for file in folder.iterdir():
        value = file.read_text().strip()
        if value.lstrip("-").isdecimal():
            found[file.name] = int(value)
    return found


def unmount_and_compare(fs):
    """Unmounts both. The lower file system must have what forebay showed, and both must be in order.
    Returns what was compared."""
    before = tree.describe(TOP)
    problems = []
    try:
        call("umount", TOP)
    except Failure as failure:
        raise Failure(f"{failure}\n{users_of(TOP)}") from None
    call("umount", LOWER)
    checks = [[*CHECK[fs], DISK], ["forebay", "check", CACHE]]
    for argv in checks:
        try:
            call(*argv)
        except Failure as failure:
            problems.append(str(failure))
    mount_lower(fs)
    after = tree.describe(UNDER)
    if fs == "btrfs":
        allow_later_times(before, after)
    problems += tree.differences(before, after)
    call("umount", LOWER)
    expect(not problems, "\n".join(problems))
    return f"{len(before)} names, {tree.size(before) >> 20} MiB in files"


def allow_later_times(before, after):
    """For files: btrfs regards any write as a modification, also a write by writeback
    (docs/semantics.md)."""
    for path in before.keys() & after.keys():
        if "sha256" in before[path]:
            before[path]["mtime"] = max(before[path]["mtime"], after[path]["mtime"])


def users_of(folder):
    """The processes that keep a file system busy, as fuser lists them."""
    return subprocess.run(["fuser", "-vm", folder], capture_output=True, text=True).stderr

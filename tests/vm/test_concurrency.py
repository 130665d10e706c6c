# SPDX-License-Identifier: GPL-2.0-only
"""Many tasks at once: threads on one file, and stress-ng's file-system class. The debug kernel finds the
most."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from conftest import clean_up
from stack import MOUNT, Stack, run, small_cache

PROGRAMS = Path(__file__).parent.parent.parent / "build/tests"
SECONDS = int(os.environ.get("FOREBAY_SECONDS", "10"))

# Each line at once. What would want more than there is below gets less.
STRESSORS = """access chdir chmod chown copy-file dentry dir dirdeep
dirmany dup fallocate fcntl fiemap file-ioctl filename flock
fpunch fsize fstat getdent handle hdd inode-flags inotify
io iomix lease link locka lockf lockofd mknod
open rename symlink sync-file touch utime xattr aio
aiol dnotify mmap msync readahead seek sendfile splice"""
SIZES = ("--copy-file-bytes 128M --fallocate-bytes 64M --hdd-bytes 32M --iomix-bytes 32M --sync-file-bytes 32M "
         "--readahead-bytes 32M --seek-size 16M")


def hammer_on(fs, mib, *marks):
    """Lower file system, MiB of cache (0: all)."""
    return pytest.param(fs, mib, marks=marks)


@pytest.mark.parametrize("fs, mib", [hammer_on("ext4", 0), hammer_on("ext4", 4), hammer_on("xfs", 4, pytest.mark.persistence),
                                     hammer_on("btrfs", 4)])
def test_hammer(fs, mib):
    """Threads write, truncate, rename and disturb one file. With a cache of 4 MiB, reclaim and writeback
    run, too."""
    clean_up()
    stack = Stack(fs=fs, **({"cache": small_cache(mib)} if mib else {})).make()
    seed = random.SystemRandom().randrange(1 << 30)
    filler = subprocess.Popen(["fio", "--name=filler", f"--filename={MOUNT}/filler", "--rw=randwrite", "--bs=4k", "--size=16M",
                               "--fdatasync=4", "--ioengine=psync", "--time_based", f"--runtime={SECONDS}"],
                              stdout=subprocess.DEVNULL)
    try:
        print(run(f"timeout {SECONDS * 5 + 60} {PROGRAMS}/hammer {MOUNT} {SECONDS} {seed}"))
        assert filler.wait(60) == 0
        stack.umount()
        stack.fsck()
    finally:
        filler.kill()
        filler.wait()
        clean_up()


@pytest.mark.parametrize("stack", [{"mib": 1024}], indirect=True)
def test_stress_ng(stack):
    """Eight stressors at once for some seconds, with their own checks on."""
    failed = []
    (MOUNT / "stress").mkdir()
    for line in STRESSORS.splitlines():
        which = " ".join(f"--{name} 1" for name in line.split())
        done = subprocess.run(f"timeout 120 stress-ng {which} {SIZES} -t 4 --temp-path {MOUNT}/stress --verify --oomable", shell=True,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode not in (0, 4) or " fail:" in done.stdout:       # 4: one of them is not supported here
            failed.append(f"{line}: {done.returncode}: {done.stdout[-1500:]}")
    assert not failed, "\n".join(failed)
    stack.umount()
    stack.fsck()

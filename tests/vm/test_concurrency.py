# SPDX-License-Identifier: GPL-2.0-only
"""Many at once: threads on one file, and stress-ng's file-system class. Most telling on the debug kernel."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from conftest import clean_up
from stack import MOUNT, Stack, run, small_cache

PROGRAMS = Path(__file__).parent.parent.parent / "build/tests"
SECONDS = int(os.environ.get("FOREBAY_SECONDS", "12"))

STRESSORS = """access chdir chmod chown copy-file dentry dir dirdeep dirmany dup fallocate fcntl fiemap file-ioctl filename flock
fpunch fsize fstat getdent handle hdd inode-flags inotify io iomix lease link locka lockf lockofd mknod open rename symlink sync-file
touch utime xattr aio aiol dnotify mmap msync readahead seek sendfile splice""".split()


@pytest.mark.persistence
@pytest.mark.parametrize("fs, mib", [("ext4", 0), ("ext4", 4), ("xfs", 4), ("btrfs", 4)])
def test_hammer(fs, mib):
    """Writers, cutters, renamers and a disturber on one file; with a cache of 4 MiB, reclaim and writeback run."""
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


@pytest.mark.parametrize("stack", [{"fs": "ext4"}], indirect=True)
def test_stress_ng(stack):
    """Every stressor for a second, with its own checks on."""
    failed = []
    (MOUNT / "stress").mkdir()
    for name in STRESSORS:
        done = subprocess.run(["timeout", "60", "stress-ng", f"--{name}", "1", "-t", "1", "--temp-path", MOUNT / "stress", "--verify",
                               "--oomable"], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode not in (0, 4):       # 4: not supported here
            failed.append(f"{name}: {done.returncode}: {done.stdout[-300:]}")
    assert not failed, "\n".join(failed)
    stack.umount()
    stack.fsck()

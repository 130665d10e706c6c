# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of docs/recipes do to the machine: devices, crashes, programs, and files whose newest contents are in PMem."""

import contextlib
import json
import os
import re
import subprocess
import time
from pathlib import Path

from recipes import ROOT, blocks, recipe
from stack import close_files, run

SSD, DB, CACHE = Path("/srv/ssd"), Path("/srv/db"), "/dev/pmem0"
DISKS, MEMORIES = ("/dev/nvme0n1", "/dev/nvme1n1"), ("/dev/pmem0", "/dev/pmem1")
PLACES = ("/srv/", "/var/", "/mnt/")
PROGRAMS = ("redis-server", "postgres", "mariadbd", "etcd", "master", "qmgr", "pickup", "local", "cleanup", "trivial-rewrite", "postlogd")
FSTAB = Path("/etc/fstab")


def two_memories():
    """Namespaces pmem0 and pmem0.1; the pages call the other one /dev/pmem1, as on a machine with two regions."""
    run("ndctl destroy-namespace -f all; ndctl disable-region region0; ndctl init-labels -f nmem0; ndctl enable-region region0")
    for _ in range(2):
        run("ndctl create-namespace -r region0 -m fsdax --map=mem -s 256M")
    Path("/dev/pmem1").unlink(missing_ok=True)
    Path("/dev/pmem1").symlink_to("/dev/pmem0.1")


def mounted():
    """The mount points of the recipes, the last one first."""
    points = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    return [point for point in reversed(points) if f"{point}/".startswith(PLACES)]


def kill_programs():
    """Ends all servers at once, as a crash does."""
    for name in PROGRAMS:
        run(f"pkill -9 -x {name}", check=False)
    deadline = time.monotonic() + 60
    while any(subprocess.run(["pgrep", "-x", name], check=False, stdout=subprocess.DEVNULL).returncode == 0 for name in PROGRAMS):
        assert time.monotonic() < deadline, run("ps ax")
        time.sleep(0.1)


def unmount_all():
    """In the order in which it is possible."""
    for point in mounted():
        done = subprocess.run(["umount", point], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert not done.returncode, done.stdout + run(f"ls -l /proc/[0-9]*/fd /proc/[0-9]*/cwd | grep {point}; grep {point} /proc/*/maps",
                                                      check=False)


def blank():
    """Nothing runs, is mounted, mapped or on the devices."""
    kill_programs()
    close_files("/srv/")
    unmount_all()
    run("mdadm --stop --scan; vgchange -qq -an; dmsetup remove_all --force", check=False)
    for device in (*DISKS, *MEMORIES):
        run(f"wipefs -qaf {device}; dd if=/dev/zero of={device} bs=1M count=8 conv=fsync status=none")


def prepared_on(device, kind="ext4", options="-q"):
    """The same on a device that is made in another way."""
    run(f"mkfs.{kind} {options} {device}; forebay format --names auto {CACHE}")
    FSTAB.write_text(blocks()["fstab", "prepare"].text.replace("/dev/nvme0n1", device).replace("ext4", kind), encoding="ascii")
    run(f"mount {SSD}; mount {DB}")


def status():
    """forebay status --json, of the one cache that is mounted."""
    return json.loads(run("forebay status --json"))[0]


def crash(absorbed=True):
    """Shuts the file system below down, so that nothing more gets there; kills the programs, unmounts. What is lost otherwise is
    in PMem."""
    seen = status()
    if absorbed:
        assert seen["syncs_absorbed"] > 0 and seen["pages_out_of_sync"] > 0, seen
    run(f"xfs_io -x -c shutdown {DB}")
    kill_programs()
    unmount_all()


def back(*places):
    """After a crash: the pages' lines, and the other places of /etc/fstab."""
    recipe("after-a-crash")
    for place in places:
        run(f"mount {place}")


def start(name):
    """A program of the pages."""
    run(f"{ROOT}/tests/vm/stand_in/systemctl start {name}")


def stop(name):
    """The same."""
    run(f"{ROOT}/tests/vm/stand_in/systemctl stop {name}")


def finish(*names):
    """Ends the programs; the file system below must be sound, and the cache empty."""
    for name in names:
        stop(name)
    device = run(f"findmnt -no SOURCE {SSD}").strip()
    cache = re.search(r"cache=([^,\s]+)", run(f"findmnt -no OPTIONS {DB}"))[1]
    unmount_all()
    run(f"e2fsck -fn {device}; forebay check {cache}")
    assert json.loads(run(f"forebay check --json {cache}"))["pages_out_of_sync"] == 0


def say(command, lines):
    """Gives a program lines on its standard input; returns what it prints."""
    done = subprocess.run(command, input="".join(f"{line}\n" for line in lines), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stdout
    return done.stdout


def written(name, text="new"):
    """A file with old contents on the SSD, and new ones in PMem."""
    file = os.open(DB / name, os.O_RDWR | os.O_CREAT)
    for contents in "old", text:
        os.pwrite(file, contents.ljust(4096).encode(), 0)
        os.fsync(file)
        if contents == "old":
            run(f"forebay drain {DB}")
    os.close(file)
    assert status()["pages_out_of_sync"] > 0


def has(folder, name):
    """The contents of such a file."""
    return (folder / name).read_text(encoding="ascii").strip()


def wait_until(true, seconds=90):
    """Of what a server does in its own time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, run("tail -20 /run/servers.log; dmesg | tail -20; forebay status", check=False)
        time.sleep(0.2)


@contextlib.contextmanager
def failing_ssd():
    """In place of the SSD, a device that can be made to refuse writes."""
    sectors = run(f"blockdev --getsz {DISKS[0]}").strip()
    run(f"dmsetup create ssd --table '0 {sectors} linear {DISKS[0]} 0'; dmsetup mknodes; mv {DISKS[0]} /dev/real; "
        f"ln -s /dev/mapper/ssd {DISKS[0]}")

    def fail():
        run("dmsetup suspend --noflush --nolockfs ssd; "
            f"dmsetup load ssd --table '0 {sectors} flakey /dev/real 0 0 3600 1 error_writes'; dmsetup resume ssd")
    try:
        yield fail
    finally:
        unmount_all()
        run(f"rm {DISKS[0]}; mv /dev/real {DISKS[0]}; dmsetup remove --force ssd")

# SPDX-License-Identifier: GPL-2.0-only
"""How long mount takes to replay a long name log that storage lacks altogether. long_log.c makes the log."""

import os
import re
import resource
import threading
import time
from pathlib import Path

import pytest
from clock import BY_THE_CLOCK
from conftest import clean_up
from libc import file_handle
from stack import FSCK, LOWER, MOUNT, create_emulated, run
from test_emu import module_fixture

emulated_devices = module_fixture
RECORDS = int(os.environ.get("FOREBAY_RECORDS", "100000"))
PART = 5                # the shorter log has so many times fewer
STEEPER = 1.4           # times as long may a record of the longer log take; a search in all takes PART times
PLAINLY = 1.5           # times as long as a program takes that makes the changes one by one, at most
MEMORY = 600            # bytes of memory for a record, at most
SLICE = 0.02            # s
LONG_LOG = Path(__file__).resolve().parents[2] / "build/tests/long_log"
MKFS = "mkfs.ext4 -Fq -b 4096 -N 100000 -J size=32 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard"


def devices(records, dirs):
    """Storage, mounted, and a cache with a log of that many records."""
    storage, cache = create_emulated("--size 256M"), create_emulated("--size 80M")
    run(f"{MKFS} {storage} && mount {storage} {LOWER} && mkdir {LOWER}/x && rmdir {LOWER}/x")
    raw, _ = file_handle(LOWER)
    size, kind = int.from_bytes(raw[:4], "little"), int.from_bytes(raw[4:8], "little")
    run(f"umount {LOWER} && forebay format --names 32M {cache}")
    version = re.search(r"Version: 0x(\w+):(\w+)", run(f"debugfs -R 'stat <2>' {storage} 2>/dev/null"))
    counter = int(version[1] + version[2], 16)
    run(f"{LONG_LOG} {records} {dirs} {cache} {kind} {raw[8:8 + size].hex()} {counter}")
    run(f"mount {storage} {LOWER}")
    return storage, cache


def seconds(command):
    """The time that a command takes, and its processor time, which other work on the host lengthens less."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_stime + after.ru_utime - before.ru_stime - before.ru_utime


class Watch(threading.Thread):
    """How much memory in virtually mapped areas is in use, at most: replay's tables are there."""

    def __init__(self):
        super().__init__()
        self.before, self.most, self.over = self.used(), 0, threading.Event()

    @staticmethod
    def used():
        """In bytes."""
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        return int(re.search(r"VmallocUsed: *(\d+)", meminfo)[1]) * 1024

    def run(self):
        while not self.over.wait(SLICE):
            self.most = max(self.most, self.used() - self.before)

    def end(self):
        """The most that there was since the beginning."""
        self.over.set()
        self.join()
        return self.most


def check(storage, records, dirs):
    """All files are there, and nothing else."""
    files = (records - dirs) // 2
    folders = [MOUNT / f"d{number}" for number in range(dirs)] or [MOUNT]
    assert sum(name.startswith("f") for folder in folders for name in os.listdir(folder)) == files
    assert sum(len(os.listdir(folder)) for folder in folders) == files + (not dirs)     # lost+found
    status = os.stat((MOUNT / "d7" if dirs else MOUNT) / "f7")
    assert (status.st_uid, status.st_gid, status.st_mode, status.st_mtime_ns) == (17, 18, 0o100640, 10 ** 9)
    assert not list(LOWER.glob(".forebay-replay*"))
    run(f"umount {MOUNT} && umount {LOWER}")
    run(FSCK["ext4"].format(device=storage))


def replay(records, dirs):
    """The processor time that a mount with such a log takes, and bytes of memory."""
    storage, cache = devices(records, dirs)
    run("dmesg -C")
    watch = Watch()
    watch.start()
    took, busy = seconds(f"mount -t forebay -o cache={cache},allow_volatile_cache {LOWER} {MOUNT}")
    memory = watch.end()
    print(run("dmesg"))
    print(f"{records} records, {dirs} folders: {took:.1f} s, {busy:.1f} of a processor, {memory >> 10} KiB")
    check(storage, records, dirs)
    run(f"forebay emu remove {storage} && forebay emu remove {cache}")
    return busy, memory


def plainly(records, dirs):
    """The processor time of the same changes on the same file system, made by a program and synced once."""
    storage = create_emulated("--size 256M")
    run(f"{MKFS} {storage} && mount {storage} {LOWER}")
    took, busy = seconds(f"{LONG_LOG} {records} {dirs} {LOWER}")
    print(f"the same without Forebay: {took:.1f} s, {busy:.1f} of a processor")
    run(f"umount {LOWER} && forebay emu remove {storage}")
    return busy


@BY_THE_CLOCK
@pytest.mark.parametrize("dirs", [100, 0], ids=["lost-folders", "one-folder"])
def test_long_log(dirs):
    """All files are there; a record of a long log takes no longer than one of a short log; and all take little
    more time than a program that makes the same changes one by one, without a sync in between."""
    for folder in (LOWER, MOUNT):
        folder.mkdir(parents=True, exist_ok=True)
    plain = plainly(RECORDS // PART, dirs)
    (short, _), (long, memory) = replay(RECORDS // PART, dirs), replay(RECORDS, dirs)
    clean_up()
    assert 0 < memory < MEMORY * RECORDS
    assert short < PLAINLY * plain
    assert long / PART < STEEPER * short

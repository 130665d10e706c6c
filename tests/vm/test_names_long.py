# SPDX-License-Identifier: GPL-2.0-only
"""How long mount takes to replay a long name log that storage lacks altogether. long_log.c makes the log."""

import os
import re
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
SECONDS = 120           # emulated processors under load; what grows with the square of the records takes much longer
LONG_LOG = Path(__file__).resolve().parents[2] / "build/tests/long_log"
MKFS = "mkfs.ext4 -Fq -b 4096 -N 100000 -J size=32 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard"


@pytest.fixture(name="devices")
def devices_fixture():
    """Storage and a cache with the log."""
    storage, cache = create_emulated("--size 256M"), create_emulated("--size 80M")
    for folder in (LOWER, MOUNT):
        folder.mkdir(parents=True, exist_ok=True)
    run(f"{MKFS} {storage} && mount {storage} {LOWER} && mkdir {LOWER}/x && rmdir {LOWER}/x")
    raw, _ = file_handle(LOWER)
    size, kind = int.from_bytes(raw[:4], "little"), int.from_bytes(raw[4:8], "little")
    run(f"umount {LOWER} && forebay format --names 32M {cache}")
    version = re.search(r"Version: 0x(\w+):(\w+)", run(f"debugfs -R 'stat <2>' {storage} 2>/dev/null"))
    counter = int(version[1] + version[2], 16)
    run(f"{LONG_LOG} {RECORDS} {cache} {kind} {raw[8:8 + size].hex()} {counter}")
    yield storage, cache
    clean_up()


@BY_THE_CLOCK
def test_long_log(devices):
    """All files are there, and it doesn't take long."""
    storage, cache = devices
    run(f"mount {storage} {LOWER}; dmesg -C")
    begin = time.monotonic()
    run(f"mount -t forebay -o cache={cache},allow_volatile_cache {LOWER} {MOUNT}")
    seconds = time.monotonic() - begin
    print(run("dmesg"))
    print(f"{RECORDS} records, {seconds:.1f} s")
    files = sum(len(os.listdir(MOUNT / f"d{number}")) for number in range(100))
    assert files == (RECORDS - 100) // 2
    status = os.stat(MOUNT / "d7/f7")
    assert (status.st_uid, status.st_gid, status.st_mode, status.st_mtime_ns) == (17, 18, 0o100640, 10 ** 9)
    assert not list(LOWER.glob(".forebay-replay*"))
    run(f"umount {MOUNT} && umount {LOWER}")
    run(FSCK["ext4"].format(device=storage))
    assert seconds < SECONDS

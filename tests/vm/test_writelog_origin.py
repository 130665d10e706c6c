# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: a log that holds writes takes no other origin, and none that was changed without
it."""

import json
import re
import subprocess
import time

import pytest
from mapped import noise, small_device
from stack import SSD, SSD2, fails, run
from writelog import DEVICE, MIB, NAME, delayed

pytestmark = pytest.mark.persistence


def test_another_origin(log):
    """A log that holds writes is not taken for another origin."""
    log.create(origin_id="01")
    log.write(0, noise(4096))
    log.remove()
    assert "another origin" in fails(f"dmsetup create {NAME} --table '{log.table(origin_id='02')}'")
    run(f"dmsetup remove {NAME}", check=False)
    log.create(origin_id="01")
    log.message("flush")
    log.remove()
    log.create(origin_id="02")


def test_name_of_an_earlier_origin(log):
    """An empty log forgets its origin's name with a table that has none: what it then gets may be another origin's. A log that
    holds writes keeps the name."""
    log.create(origin_id="01")
    log.message("flush")
    log.remove()
    log.options = {}
    log.create().write(0, noise(4096))
    log.remove()
    log.create(origin_id="02")
    log.remove()
    log.options = {}
    log.create()
    log.remove()
    assert "another origin" in refused(log, origin_id="01")


def refused(log, **options):
    """The error of creating the device, which must fail."""
    said = fails(f"dmsetup create {NAME} --table '{log.table(**options)}'")
    run(f"dmsetup remove {NAME}", check=False)
    log.options = {}
    return said


def change(device, kib, data):
    """Writes to the origin past the log."""
    subprocess.run(f"dd of={device} bs=4k seek={kib // 4} iflag=fullblock oflag=direct conv=notrunc status=none", shell=True, input=data,
                   check=True)


def fingerprint(log):
    """The fingerprint of the origin's beginning that a log keeps; the log is not in use."""
    shown, = json.loads(run(f"forebay writelog status --json {log.cache}"))
    return shown["origin_fingerprint"]


def test_changed_origin_is_refused(log):
    """A log that holds writes refuses another disk of the same size, and a disk that was changed without
    the log. With any_origin it takes them."""
    change(SSD, 0, noise(MIB, 8))
    change(SSD2, 0, noise(MIB, 9))
    log.create().write(8 * MIB, noise(8192))
    log.remove()
    log.origin = SSD2
    assert "another disk, or was changed without the log" in refused(log)
    assert re.fullmatch("[0-9a-f]{8}", fingerprint(log))
    log.origin = SSD
    change(SSD, 1020, noise(4096, 2))
    assert "another disk, or was changed without the log" in refused(log)
    said = fails(f"forebay writelog create {NAME} {small_device('part', log.sectors // 2048, SSD)} {log.cache}")
    assert "began with other data" in said and "--any-origin" in said, said
    run("dmsetup remove part")
    change(SSD, 1020, noise(MIB, 8)[1020 * 1024:])
    log.create()
    log.remove()
    change(SSD, 1024, noise(4096, 3))       # what lies behind isn't looked at
    change(SSD, 0, noise(4096, 4))
    run(f"dmsetup create {NAME} --table '{log.table(any_origin=1)}'")
    assert "any_origin" not in run(f"dmsetup table {NAME}")
    assert log.read(0, 4096) == noise(4096, 4) and log.read(8 * MIB, 8192) == noise(8192)
    log.options = {}
    log.again()


def test_empty_log_takes_a_changed_origin(log):
    """When all data have been written back, the origin may be changed without the log."""
    log.create().write(0, noise(MIB))
    log.message("flush")
    log.remove()
    assert fingerprint(log) == "none"       # an older Forebay takes it, too
    change(SSD, 0, noise(4096, 2))
    log.create()
    assert log.read(0, 4096) == noise(4096, 2)
    log.write(MIB, noise(4096))
    run(f"dmsetup suspend {NAME}; dmsetup resume {NAME}")
    log.write(2 * MIB, noise(4096))
    log.remove()
    assert fingerprint(log) not in ("none", "changing")
    change(SSD, 0, noise(4096, 3))
    assert "changed without the log" in refused(log)


def test_fingerprint_follows_writeback(log):
    """Writeback, discards and a reload change the origin's first MiB; the log still takes the origin."""
    log.create()
    for turn in range(4):
        log.write(turn * 4096, noise(128 * 1024, turn))
        log.write(0, noise(512, turn))
        log.message("flush")
        log.write(4096 * 7, noise(16384, turn + 10))
        log.write(20 * MIB, noise(4096))
        run(f"blkdiscard -o 65536 -l {2 * MIB} {DEVICE}")
        expected = log.read(0, 65536)
        if turn == 2:
            log.reload(slots=2)
        log.again()
        assert log.read(0, 65536) == expected
    log.remove()
    assert fingerprint(log) not in ("none", "changing")
    change(SSD, 512, noise(4096))
    assert "changed without the log" in refused(log)


def test_origin_that_was_left_half_written(log):
    """While writeback writes to the origin's first MiB, its fingerprint is unknown. The log is taken for
    such an origin, and the writeback finished."""
    delayed(log, 1000).create(depth=1)          # 8 of the 64 at a time
    for block in range(64):
        log.write(block * 16384, noise(4096, block))
    expected = log.read(0, MIB)
    with subprocess.Popen(f"dmsetup message {NAME} 0 flush", shell=True, stderr=subprocess.DEVNULL) as flush:
        deadline = time.monotonic() + 60
        while not log.status()["writeback_bios"] and time.monotonic() < deadline:
            time.sleep(0.01)
        run(f"dmsetup suspend {NAME}")
        flush.wait()
    log.remove()
    assert fingerprint(log) == "changing"
    log.origin = SSD
    log.create()
    assert log.read(0, MIB) == expected
    log.message("flush")
    log.remove()
    assert log.read(0, MIB, device=SSD) == expected

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: what a read gives is what a replay gives, although the worker writes blocks before their generation's
turn. These tests have a boot of their own: in its module (FB_BREAK_SLOW_STORE) a write that begins with FB_BREAK waits
between its commit and its entry in the index, until a generation is freed or latencies are measured. A cleaner notices the
end of its last flush when latencies are measured. And the medium has lost a block that begins with FB_LOST! while they are."""

import os
import subprocess
import time
from pathlib import Path

from mapped import noise
from stack import SSD, run
from writelog import (BAD, DEVICE, NAME, SLOWLY, drain_one, error_table, fill_generation, refusing, refusing_slowly,
                      resolved)

BLOCK = 4096
SLOW = b"FB_BREAK".ljust(BLOCK, b"s")
LOST = b"FB_LOST!".ljust(BLOCK, b"l")


def start_write(block, data):
    """Begins a direct write of a block."""
    path = f"/tmp/block-{block}-{data[-1]}"
    Path(path).write_bytes(data)
    return subprocess.Popen(f"exec dd if={path} of={DEVICE} bs={BLOCK} seek={block} oflag=direct conv=notrunc status=none", shell=True)


def start_slow_write(block):
    """The same, with a write that is delayed: it is when this returns."""
    run("dmesg -C")
    slow = start_write(block, SLOW)
    while "a write waits" not in run("dmesg"):
        assert slow.poll() is None, "the earlier write wasn't delayed: this shows nothing"
        time.sleep(0.1)
    return slow


def same_after_replay(log, block, expected):
    """A read gives the later write before and after a replay, and the origin gets it."""
    before = log.read(block * BLOCK, BLOCK)
    log.again()
    after = log.read(block * BLOCK, BLOCK)
    log.message("flush")
    assert log.read(block * BLOCK, BLOCK, device=SSD) == after == expected
    assert before == after, "a read before the replay gave the earlier write"


def test_neighbour_with_an_older_write_in_flight(log):
    """Of two writes of a block in flight, the later one is in the index, the earlier one not yet. Writeback of the block's
    neighbour must leave it alone: else the index takes the earlier write afterwards, and replay the later one."""
    run(os.environ["FOREBAY_LOAD"])
    log.create(block_size=BLOCK, high_mark=99, low_mark=98)
    log.write(0, noise(BLOCK, 1))
    fill_generation(log)
    slow = start_slow_write(1)
    fast = noise(BLOCK, 2)
    assert start_write(1, fast).wait() == 0
    drain_one(log)
    assert log.read(0, BLOCK, device=SSD) == noise(BLOCK, 1)
    assert slow.wait() == 0
    same_after_replay(log, 1, fast)


def test_refused_block_with_an_older_write_in_flight(log):
    """The same with a block that was refused, and is tried again while its newest version is in the current generation."""
    run(os.environ["FOREBAY_LOAD"])
    refusing(log).create(block_size=BLOCK, high_mark=99, low_mark=98)
    block = BAD * 512 // BLOCK
    log.write(block * BLOCK, noise(BLOCK, 1))
    assert "error" in log.message("flush", check=False).lower()
    assert log.status()["refused"] == 1
    slow = start_slow_write(block)
    fast = noise(BLOCK, 2)
    assert start_write(block, fast).wait() == 0
    error_table(False, log.sectors)
    time.sleep(6)           # refused blocks are tried every 4 seconds
    log.message("latency on")
    assert slow.wait() == 0
    same_after_replay(log, block, fast)


def until(log, key, value):
    """Waits until the status line says so."""
    end = time.monotonic() + 30
    while log.status()[key] != value:
        assert time.monotonic() < end, log.status()
        time.sleep(0.05)


def test_cleaner_with_a_refused_block_that_goes_by_itself(log):
    """A cleaner's last flush meets a block that the origin refuses, and that is in a new generation then. The origin takes
    it before the cleaner looks. The log is empty all the same: no replay brings the block over a later write to the origin."""
    run(os.environ["FOREBAY_LOAD"])
    refusing(log).create(block_size=BLOCK, high_mark=99, low_mark=98)
    block = BAD * 512 // BLOCK
    log.write(0, noise(BLOCK, 1))
    run("dmsetup suspend --noflush --nolockfs bad")
    with subprocess.Popen(f"exec dmsetup message {NAME} 0 cleaner", shell=True) as cleaner:
        until(log, "mode", "cleaning")
        assert start_write(block, noise(BLOCK, 2)).wait() == 0
        run("dmsetup resume bad")
        until(log, "refused", 1)
        error_table(False, log.sectors)
        until(log, "refused", 0)
        log.message("latency on")
        assert cleaner.wait() == 0
    assert (log.status()["mode"], log.status()["used"]) == ("cleaner", 0)
    later = noise(BLOCK, 3)
    assert start_write(block, later).wait() == 0
    log.again()
    assert log.read(block * BLOCK, BLOCK) == later


def test_refused_block_that_the_medium_loses(log):
    """The origin takes long to refuse a block, so the block is not tried again before its generation is freed. By then the
    medium has lost it. With on_damage skip, the block can't be read, and holds up nothing: its generation is freed."""
    run(os.environ["FOREBAY_LOAD"])
    refusing_slowly(log).create(block_size=BLOCK, high_mark=99, low_mark=98, on_damage="skip")
    block = SLOWLY[0] * 512 // BLOCK
    log.write(block * BLOCK, LOST)
    log.message("flush", check=False)
    until(log, "generations", 2)
    until(log, "used", 1)
    assert log.status()["refused"] == 1
    log.message("latency on")
    log.message("flush", check=False)
    resolved(log)
    status = log.status()
    assert (status["used"], status["medium_errors"]) == (0, 1), status
    assert subprocess.run(f"dd if={DEVICE} of=/dev/null bs={BLOCK} skip={block} count=1 iflag=direct", shell=True).returncode
    assert log.status()["lost_reads"]
    log.write(block * BLOCK, noise(BLOCK, 1))
    assert log.read(block * BLOCK, BLOCK) == noise(BLOCK, 1)

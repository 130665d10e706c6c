# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: what a read gives is what a replay gives, although the worker writes blocks before their generation's
turn. These tests have a boot of their own: in its module (FB_BREAK_SLOW_STORE) a write that begins with FB_BREAK waits
between its commit and its entry in the index, until a generation is freed or latencies are measured. A cleaner notices the
end of its last flush when latencies are measured. The medium has lost a block that begins with FB_LOST! while they are, and
can't hold a generation while depth is 1."""

import json
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


def test_loss_of_a_refused_block_is_no_error_of_the_origin(log):
    """The medium has lost a block that the origin refuses, when the block is tried again: that is damage of the log."""
    run(os.environ["FOREBAY_LOAD"])
    refusing(log).create(block_size=BLOCK, high_mark=99, low_mark=98, on_damage="skip")
    log.write(BAD * 512, LOST)
    log.message("flush", check=False)
    until(log, "refused", 1)
    log.message("latency on")
    errors = log.status()["origin_errors"]
    resolved(log)
    status = log.status()
    assert (status["medium_errors"], status["origin_errors"]) == (1, errors), status


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


def test_damage_is_no_error_of_an_origin_that_fails(log):
    """The origin takes a generation, and fails the flush. Then the medium loses a block, so that the origin's driver can't read
    it (here the origin refuses the block). That is damage of the log, although writeback has been failing."""
    run(f"{os.environ['FOREBAY_LOAD']}; modprobe dm-flakey")
    half = log.sectors // 2
    run(f"echo '0 {half} linear {SSD} 0\n{half} {half} flakey {SSD} {half} 0 3600 1 error_writes' | dmsetup create bad; dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    log.create(block_size=BLOCK, on_damage="skip")
    log.write(0, noise(BLOCK * 4))
    log.write(BAD * 512, LOST)
    run("dmesg -C")
    assert "error" in log.message("flush", check=False).lower()
    assert (log.status()["health"], log.status()["refused"]) == ("error", 0)
    log.message("latency on")
    refusing(log)
    until(log, "health", "ok")
    assert log.status()["medium_errors"] == 1
    assert "refuses sector" not in run("dmesg")


def reads(block):
    """Whether a block can be read from the device."""
    return not subprocess.run(f"dd if={DEVICE} of=/dev/null bs={BLOCK} skip={block} count=1 iflag=direct status=none", shell=True,
                              check=False).returncode


def test_lost_block_that_a_cleaner_cannot_write(log):
    """A block is lost, and the device becomes a cleaner. A write of the block that the origin fails doesn't bring the origin's
    older block back; one that it takes ends the loss."""
    run(os.environ["FOREBAY_LOAD"])
    refusing(log)
    error_table(False, log.sectors)
    log.create(block_size=BLOCK, on_damage="skip")
    block = BAD * 512 // BLOCK
    log.write(block * BLOCK, noise(BLOCK, 1))
    log.message("flush")
    refusing(log)
    log.write(block * BLOCK, LOST)
    log.message("latency on")
    log.message("flush", check=False)
    resolved(log)
    log.message("cleaner")
    assert log.status()["mode"] == "cleaner"
    run("modprobe dm-flakey")
    refusing(log, f"flakey {SSD} {BAD} 0 3600 1 error_writes")
    assert log.read(block * BLOCK, BLOCK, device=log.origin) == noise(BLOCK, 1) and not reads(block)
    later = noise(BLOCK, 2)
    assert start_write(block, later).wait()
    assert not reads(block), "the older block"
    assert start_write(block + 1, later).wait() == 0 and not reads(block)
    error_table(False, log.sectors)
    assert start_write(block, later).wait() == 0
    assert log.read(block * BLOCK, 2 * BLOCK) == later * 2


def test_medium_that_holds_no_generation(log):
    """Writes fail then, and don't wait. What is in the log is written back, and the empty log keeps no fingerprint."""
    run(os.environ["FOREBAY_LOAD"])
    log.create(block_size=BLOCK)
    log.write(0, noise(BLOCK, 1))
    log.message("set depth 1")
    log.message("flush")
    for block in range(2):
        assert start_write(block, noise(BLOCK, 2)).wait(timeout=60)
    status = log.status()
    broken = status["generations_in_all"] - 1
    assert (status["health"], status["used"], status["broken"], status["medium_errors"]) == ("failed", 0, broken, broken), status
    assert log.read(0, BLOCK) == noise(BLOCK, 1)
    assert "the medium can't hold" in run("dmesg")
    said = run(f"forebay writelog status {NAME}", check=False)
    assert "can't hold" in said and "error_timeout" not in said, said
    log.message("flush")
    log.remove()
    shown, = json.loads(run(f"forebay writelog status --json {log.cache}"))
    assert shown["origin_fingerprint"] == "none"
    log.create().write(0, noise(BLOCK, 3))
    assert log.read(0, BLOCK) == noise(BLOCK, 3)

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: what a read gives is what a replay gives, although writeback takes blocks from younger generations
along. These tests have a boot of their own: in its module (FB_BREAK_SLOW_STORE) a write that begins with FB_BREAK waits
between its commit and its entry in the index, until a generation is freed."""

import os
import subprocess
import time
from pathlib import Path

from mapped import noise
from stack import SSD, run
from writelog import DEVICE, drain_one, fill_generation

BLOCK = 4096
SLOW = b"FB_BREAK".ljust(BLOCK, b"s")


def start_write(block, data):
    """Begins a direct write of a block."""
    path = f"/tmp/block-{block}-{data[-1]}"
    Path(path).write_bytes(data)
    return subprocess.Popen(f"exec dd if={path} of={DEVICE} bs={BLOCK} seek={block} oflag=direct conv=notrunc status=none", shell=True)


def test_neighbour_with_an_older_write_in_flight(log):
    """Of two writes of a block in flight, the later one is in the index, the earlier one not yet. Writeback of the block's
    neighbour must leave it alone: else the index takes the earlier write afterwards, and replay the later one."""
    run(os.environ["FOREBAY_LOAD"])
    log.create(block_size=BLOCK, high_mark=99, low_mark=98)
    log.write(0, noise(BLOCK, 1))
    fill_generation(log)
    run("dmesg -C")
    slow = start_write(1, SLOW)
    while "a write waits" not in run("dmesg"):
        assert slow.poll() is None, "the earlier write wasn't delayed: this shows nothing"
        time.sleep(0.1)
    fast = noise(BLOCK, 2)
    assert start_write(1, fast).wait() == 0
    drain_one(log)
    assert log.read(0, BLOCK, device=SSD) == noise(BLOCK, 1)
    assert slow.wait() == 0
    before = log.read(BLOCK, BLOCK)
    log.again()
    after = log.read(BLOCK, BLOCK)
    log.message("flush")
    assert log.read(BLOCK, BLOCK, device=SSD) == after == fast
    assert before == after, "a read before the replay gave the earlier write"

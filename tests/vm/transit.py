# SPDX-License-Identifier: GPL-2.0-only
"""A transit cache over a device (perhaps slow, failing, a BTT), set up as the tests of
dm-forebay-transit need it."""

import mmap
import os
import time
from pathlib import Path

import pytest
from mapped import Target
from stack import SSD, run

WRITES = int(os.environ.get("FOREBAY_OPS", "2000")) // 2
STATE = "/tmp/verificator.state"
BLOCK, MIB = 4096, 1 << 20
STAGED = {"eager_eviction": "off", "bypass": "off"}
BTT = "/dev/pmem0s"
POLICIES = ["transit", "pmbd", "pmbd70", "lru", "coactive", "none"]
# What a policy is tested with; transit also with its switches.
VARIANTS = [{"policy": name} for name in POLICIES] + [
    {"eager_eviction": "off"}, {"bypass": "off"}, {"eager_eviction": "off", "bypass": "off"}]


def btt(block=4096):
    """Makes the PMem a BTT with that block size."""
    size = Path("/sys/block/pmem0s/queue/logical_block_size")
    if not size.exists() or int(size.read_text(encoding="ascii")) != block:
        run(f"ndctl create-namespace -f -e namespace0.0 -m sector -l {block}")
    return BTT


class Transit(Target):
    """The target over `below`, which may be a mapped device."""
    module, kind, name = "dm-forebay-transit", "forebay-transit", "tc"

    def __init__(self, below=SSD, mib=32):
        super().__init__(mib * 2048)
        self.below = below

    def devices(self):
        """The device below, the only one."""
        return self.below

    def status(self):
        """The status line as a dict."""
        words = run(f"dmsetup status {self.name}").split()[3:]
        used, slots = (int(n) for n in words[2].split("/"))
        assert int(words[3]) == len(words) - 4
        numbers = {key: int(value) for key, value in zip(words[4::2], words[5::2])}
        return {"health": words[0], "policy": words[1], "used": used, "slots": slots, **numbers}

    def put(self, offset, data, flags=0, path=None):
        """Writes directly, without a flush. With O_DSYNC the write is FUA, and on a device a flush
        follows. If `path` is given, writes to that file over the device."""
        page = mmap.mmap(-1, len(data))
        page[:] = data
        fd = os.open(path or self.device, os.O_RDWR | os.O_DIRECT | flags)
        try:
            assert os.pwrite(fd, page, offset) == len(data)
        finally:
            os.close(fd)

    def flush(self):
        """fsync of the device."""
        fd = os.open(self.device, os.O_RDWR)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def name_of(variant):
    """For pytest."""
    return "-".join(f"{key}-{value}" if key != "policy" else value for key, value in variant.items())


def each(variants):
    """A test for each of these option sets."""
    return pytest.mark.parametrize("options", variants, ids=name_of)


def settled(cache, used=0):
    """Waits until so few slots are in use."""
    for _ in range(100):
        if cache.status()["used"] <= used:
            return
        time.sleep(0.05)
    raise AssertionError(cache.status())

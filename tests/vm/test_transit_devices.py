# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-transit: devices that go away, or are given to two targets; tables that are taken away; direct
I/O with memory that begins anywhere."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from mapped import direct_from_anywhere, noise
from stack import SSD, fails, run
from transit import BLOCK, MIB, each


def test_btt_taken_from_its_driver(over_btt):
    """The BTT goes away under a writer: writes and flushes fail, and the mapped device can be removed. What
    was flushed is there when the BTT is back."""
    over_btt.create()
    over_btt.put(0, noise(MIB))
    over_btt.flush()
    device = Path("/sys/block/pmem0s/device")
    driver, name = os.path.realpath(device / "driver"), os.path.basename(os.path.realpath(device))
    dd = f"dd if=/dev/zero of={over_btt.device} bs=64k seek=64 oflag=direct,dsync conv=notrunc 2>/dev/null"
    with subprocess.Popen(dd, shell=True) as writer:
        time.sleep(0.5)
        run(f"timeout 60 sh -c 'echo {name} >{driver}/unbind'")
        assert writer.wait(60)
    run(f"timeout 60 dmsetup remove --retry {over_btt.name}")
    run(f"echo {name} >{driver}/bind")
    deadline = time.monotonic() + 30
    while not os.path.exists(over_btt.below) and time.monotonic() < deadline:
        time.sleep(0.2)
    over_btt.create()
    assert over_btt.read(0, MIB) == noise(MIB)


@pytest.mark.parametrize("how", ["remove --force", "wipe_table", "wipe_table --noflush"])
def test_table_taken_away(cache, how):
    """The table is replaced under a writer. Writes fail from then on; what was cached is on the device."""
    cache.create()
    cache.put(0, noise(MIB))
    dd = f"dd if=/dev/zero of={cache.device} bs=64k seek=64 oflag=direct conv=notrunc 2>/dev/null"
    with subprocess.Popen(dd, shell=True) as writer:
        time.sleep(0.3)
        run(f"dmsetup {how} {cache.name}", check=False)     # remove --force leaves a device in use
        assert writer.wait(60)
    run(f"dmsetup remove --retry {cache.name}", check=False)
    assert cache.read(0, MIB, SSD) == noise(MIB)


@each([{}, {"bypass": "off"}, {"policy": "pmbd"}, {"policy": "lru"}, {"policy": "coactive"}])
def test_cache_of_one_block(cache, options):
    """Large bios, many at once, go through a cache of one block."""
    cache.create(cache_size=BLOCK, block_size=BLOCK, **options)
    run(f"timeout 200 fio --name=x --filename={cache.device} --rw=randwrite --bs=4k-64k --direct=1 --size=4m "
        "--ioengine=libaio --iodepth=16 --verify=crc32c --do_verify=1 --verify_fatal=1 --fsync=32")


def test_one_device_under_two_caches(cache):
    """A second cache is refused, also one of the same table. A reload of the first isn't."""
    run("modprobe dm-forebay-transit")
    said = fails(f"printf '0 2048 forebay-transit {SSD}\\n2048 2048 forebay-transit {SSD}\\n' | dmsetup create other")
    assert "has a transit cache already" in said, said
    cache.create()
    said = fails(f"dmsetup create other --table '0 2048 forebay-transit {SSD}'")
    assert "has a transit cache already" in said, said
    cache.reload(workers=1)
    cache.remove()
    run(f"dmsetup create other --table '0 2048 forebay-transit {SSD}'; dmsetup remove other")


def test_read_only_device(cache):
    """The block layer lets writes through to a device that was set read-only. So it gets no cache."""
    run(f"modprobe dm-forebay-transit; blockdev --setro {SSD}")
    try:
        said = fails(f"dmsetup create {cache.name} --table '0 2048 forebay-transit {SSD}'")
    finally:
        run(f"blockdev --setrw {SSD}; dmsetup remove {cache.name}", check=False)
    assert "is read-only" in said, said


@pytest.mark.parametrize("block_size", [512, 4096])
def test_memory_that_begins_anywhere(cache, block_size):
    """Direct I/O with buffers that begin wherever the device takes them, beside a small cache."""
    cache.create(block_size=block_size, cache_size=MIB // 4)
    direct_from_anywhere(cache.device, block_size, 300, 2)

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-transit: when blocks leave the cache, and in which order. By flushes and FUA, as the policy
wants it, and by discards."""

import os
import random
import time
from pathlib import Path

import pytest
from logwrites import MARK, entries
from mapped import MANY, beside_checker, logged_device, noise, verificator
from stack import SSD, SSD2, run
from transit import BLOCK, MIB, STAGED, STATE, VARIANTS, each, settled


def versions(number):
    """A block that says which write it is of."""
    return number.to_bytes(8, "big") * (BLOCK // 8)


@each([variant for variant in VARIANTS if variant.get("policy") != "none"])
def test_flush_order(cache, options):
    """By dm-log-writes below: no block goes back to an older version, what was flushed is there, and so is FUA.

    FUA writes have blocks of their own: dm-log-writes lists them before older writes that no flush has covered.
    """
    cache.sectors = 2048
    cache.below = logged_device(cache.sectors)
    cache.create(cache_size="128K", block_size=BLOCK, **options)
    dice, image, promised = random.Random(3), bytearray(MIB), []
    for number in range(1, 301):
        fua = number % 25 == 0
        at = (dice.randrange(MIB // 2 // BLOCK) + fua * MIB // 2 // BLOCK) * BLOCK
        cache.put(at, versions(number), os.O_DSYNC if fua else 0)
        image[at:at + BLOCK] = versions(number)
        if number % 60 == 0:
            cache.flush()
        if fua or number % 60 == 0:
            run(f"dmsetup message logw 0 mark {len(promised)}")
            promised.append(image[:] if number % 60 == 0 else {at: number})
    assert cache.status()["fua"] == 12
    cache.remove()
    run("dmsetup remove --retry logw")
    check_log(bytearray(MIB), promised)


def check_log(image, promised):
    """Carries out what dm-log-writes saw, and looks at each mark."""
    marks = 0
    for flags, sector, data in entries(SSD2):
        if not flags & MARK:
            for at in range(0, len(data), BLOCK):
                where = sector * 512 + at
                assert data[at:at + 8] >= image[where:where + 8], f"block {where // BLOCK} went back"
                image[where:where + BLOCK] = data[at:at + BLOCK]
        elif data.isdigit():
            must = promised[int(data)]
            marks += 1
            if isinstance(must, dict):
                assert all(image[at:at + BLOCK] == versions(number) for at, number in must.items()), f"mark {data}"
            else:
                assert image == must, f"mark {data}"
    assert marks == len(promised)


def test_flush_drains_what_was_complete(cache):
    """No block goes down before the flush, and all go down with it."""
    cache.create(block_size=BLOCK, cache_size=MIB, **STAGED)
    cache.write(0, bytes(MIB))
    for i in range(20):
        cache.put(i * BLOCK, noise(BLOCK, i))
    assert cache.status()["used"] == 20
    assert cache.read(0, 20 * BLOCK, device=SSD) == bytes(20 * BLOCK)
    cache.put(3 * BLOCK, noise(BLOCK, 77))
    assert cache.status()["used"] == 20
    cache.flush()
    assert cache.status()["used"] == 0
    expected = b"".join(noise(BLOCK, 77 if i == 3 else i) for i in range(20))
    assert cache.read(0, 20 * BLOCK, device=SSD) == expected == cache.read(0, 20 * BLOCK)


def test_fua_goes_down_alone(cache):
    """ext4 overwrites with FUA and no flush. That block is on the device and leaves the cache; the other
    blocks stay in the cache."""
    cache.sectors = 400 * 2048
    cache.create(block_size=BLOCK, cache_size="8M", **STAGED)
    run(f"mkfs.ext4 -Fq -E lazy_itable_init=0,lazy_journal_init=0 {cache.device}")
    folder = Path("/mnt/tc")
    folder.mkdir(parents=True, exist_ok=True)
    run(f"mount -o commit=300 {cache.device} {folder}")
    try:
        (folder / "f").write_bytes(noise(MIB))
        os.sync()
        for i in (1, 2):
            cache.put(16384, noise(BLOCK, 100 + i), path=folder / "f")
        before = cache.status()
        cache.put(16384, noise(BLOCK, 103), os.O_DSYNC, folder / "f")
        after = cache.status()
        assert (after["fua"] - before["fua"], after["flushes"] - before["flushes"]) == (1, 0), (before, after)
        assert after["used"] == before["used"] - 1 and after["used"] >= 0
        with open(SSD, "rb") as device:
            below = device.read(cache.sectors * 512)
        assert noise(BLOCK, 103) in below and noise(BLOCK, 101) not in below
        with open(folder / "f", "rb") as file:
            assert file.read() == noise(MIB)[:16384] + noise(BLOCK, 103) + noise(MIB)[16384 + BLOCK:]
    finally:
        run(f"umount {folder}")


def test_switches_at_run_time(cache):
    """With eager eviction off the cache fills, then writes go past it. With bypass off, too, writers
    wait until there is space."""
    cache.create(block_size=BLOCK, cache_size="64K")
    cache.write(0, noise(MIB))
    assert cache.status()["evicted"] > 0
    settled(cache)
    cache.message("set eager_eviction off")
    before = cache.status()["bypassed"]
    cache.put(0, noise(128 << 10, 2))
    status = cache.status()
    assert (status["used"], status["bypassed"] - before) == (16, 16), status
    cache.message("set bypass off")
    cache.put(128 << 10, noise(128 << 10, 3))
    after = cache.status()
    assert after["bypassed"] == status["bypassed"] and after["stalled"] > 0, after
    assert cache.read(0, 256 << 10) == noise(128 << 10, 2) + noise(128 << 10, 3)
    assert cache.status()["used"] > 0
    cache.message("set workers 1")
    cache.message("set eager_eviction on")
    settled(cache)
    assert cache.read(0, 256 << 10, device=SSD) == noise(128 << 10, 2) + noise(128 << 10, 3)


def test_policies_differ(cache):
    """The purpose of each policy: when it evicts, and which block."""
    def filled(**options):
        cache.create(block_size=BLOCK, cache_size="64K", **options)     # 16 slots
        for i in range(10):
            cache.put(i * BLOCK, noise(BLOCK, i))
        return cache

    filled(policy="transit")
    settled(cache)
    cache.remove()
    filled(policy="lru").read(0, BLOCK)         # block 0 is used again: block 1 goes first
    for i in range(10, 17):
        cache.put(i * BLOCK, noise(BLOCK, i))
    hits = cache.status()["read_hits"]
    assert cache.status()["used"] == 16
    cache.read(0, BLOCK)
    assert cache.status()["read_hits"] == hits + 1
    cache.read(BLOCK, BLOCK)
    assert cache.status()["read_hits"] == hits + 1
    cache.remove()
    assert filled(policy="pmbd").status()["used"] == 10
    for i in range(10, 17):
        cache.put(i * BLOCK, noise(BLOCK, i))
    settled(cache, 1)
    cache.remove()
    filled(policy="pmbd70").put(10 * BLOCK, noise(BLOCK))
    cache.put(11 * BLOCK, noise(BLOCK))
    settled(cache, 1)
    cache.remove()
    filled(policy="coactive")
    time.sleep(0.3)                             # idle: written, and kept
    status = cache.status()
    assert (status["used"], status["evicted"]) == (10, 10), status
    cache.read(0, 10 * BLOCK)
    assert cache.status()["read_hits"] - status["read_hits"] == 10
    for i in range(10, 30):
        cache.put(i * BLOCK, noise(BLOCK, i))
    assert cache.status()["used"] <= 16
    cache.remove()
    assert filled(policy="none").status()["slots"] == 0


@pytest.mark.parametrize("options", [{}, STAGED, {"policy": "coactive"}], ids=["transit", "staged", "coactive"])
def test_discard_and_zeroes(cache, options):
    """Zeros read as zeros and no cached block comes back. A discard drops cached blocks."""
    cache.create(block_size=BLOCK, cache_size="4M", **options)
    cache.write(0, noise(2 * MIB))
    cache.put(0, noise(MIB, 2))
    run(f"blkdiscard -z -o 8192 -l {MIB} {cache.device}")
    assert cache.status()["zeroes"] > 0, "the device knows no write-zeroes?"
    expected = noise(8192, 2) + bytes(MIB) + noise(2 * MIB)[8192 + MIB:]
    assert cache.read(0, 2 * MIB) == expected
    cache.put(16384, noise(BLOCK, 9))
    run(f"blkdiscard -o {MIB} -l {MIB} {cache.device}")
    assert cache.status()["discards"] > 0
    cache.put(MIB + 8192, noise(BLOCK, 10))
    expected = expected[:16384] + noise(BLOCK, 9) + expected[16384 + BLOCK:MIB]
    assert cache.read(0, MIB) == expected
    assert cache.read(MIB + 8192, BLOCK) == noise(BLOCK, 10)
    cache.remove()
    assert cache.read(0, MIB, device=SSD) == expected
    assert cache.read(MIB + 8192, BLOCK, device=SSD) == noise(BLOCK, 10)


def test_discard_drops(cache):
    """What is discarded never reaches the device."""
    cache.create(block_size=BLOCK, cache_size=MIB, **STAGED)
    cache.put(0, noise(MIB // 2))
    before = cache.status()["evicted"]
    run(f"blkdiscard {cache.device}")
    status = cache.status()
    assert (status["used"], status["dropped"], status["evicted"]) == (0, 128, before)


def test_discards_beside_writers(cache):
    """Discards and zeros of other blocks, over and over, while the checker writes its own."""
    cache.create(cache_size="256K", block_size=BLOCK)

    def discard(_number):
        run(f"blkdiscard -o {MIB} {cache.device}; blkdiscard -z -o {MIB} -l {MIB} {cache.device}")
        cache.put(MIB, noise(65536))

    beside_checker(f"mixed {cache.device} {MIB} 9 {MANY} 4 1 {BLOCK} 65536 {STATE}", 4, discard)
    cache.remove()
    verificator(f"check {SSD} {STATE}")

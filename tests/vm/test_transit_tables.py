# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-transit: tables, messages and counters; devices that come and go while others work with them."""

import os
import subprocess
from pathlib import Path

import pytest
from mapped import DEBUG, MANY, VERIFICATOR, beside_checker, flush_in_freeze, noise, slow_device, small_device, verificator
from stack import SSD, fails, run
from transit import BLOCK, BTT, MIB, POLICIES, STAGED, STATE, VARIANTS, WRITES, btt

ROUNDS = int(os.environ.get("FOREBAY_ROUNDS", "40"))


def test_suspend_resume_reload_under_load(cache):
    """The checker works while the cache is suspended and resumed, and tables with other caching policies
    are loaded. The policy without a cache is left out: readers of the emulated SSD could see blocks that
    are just being written, torn."""
    caching = [policy for policy in POLICIES if policy != "none"]
    cache.sectors = 4 * 2048
    cache.create(cache_size="256K", block_size=BLOCK)

    def reload(number):
        run("dmsetup suspend tc; dmsetup resume tc")
        cache.reload(cache_size="256K", block_size=BLOCK, policy=caching[number % len(caching)])

    beside_checker(f"mixed {cache.device} {4 * MIB} 8 {MANY} 4 1 {BLOCK} 131072 {STATE}", 2 * len(caching), reload)
    verificator(f"check {cache.device} {STATE}")


@pytest.mark.skipif(DEBUG, reason="a kernel without suspend")
def test_tasks_are_frozen(cache):
    """Writers that wait for a slot can be frozen, because the workers aren't. A message flush continues
    afterwards."""
    cache.below = slow_device(cache.sectors, SSD, 20)
    cache.create(cache_size="256K", block_size=BLOCK, bypass="off")
    beside_checker(f"run {cache.device} {8 * MIB} 11 {MANY} 8 1 4096 131072 {STATE}", 2, lambda number: flush_in_freeze("tc"))
    assert cache.status()["stalled"] > 0
    verificator(f"check {cache.device} {STATE}")


def test_create_and_remove_under_load(over_btt):
    """The device is removed when its last user has ended, and created again with another policy. Each
    time all data are below."""
    over_btt.sectors = 2048
    checked = 0
    for i in range(ROUNDS):
        over_btt.create(cache_size="128K", block_size=BLOCK, **VARIANTS[i % len(VARIANTS)])
        worker = subprocess.Popen(f"{VERIFICATOR} whole {over_btt.device} 131072 {i} 60 3 1 {BLOCK} 16384 {STATE}", shell=True)
        if over_btt.remove_after(worker):
            verificator(f"check {BTT} {STATE}")
            checked += 1
    assert checked > ROUNDS // 2


@pytest.mark.slow
def test_what_is_refused(cache):
    """Each wrong table is refused with its reason."""
    run("modprobe dm-forebay-transit")
    create = "dmsetup create tc --table"

    def refused(words, why, sectors=cache.sectors):
        said = fails(f"{create} '0 {sectors} forebay-transit {words}'")
        run("dmsetup remove tc", check=False)
        assert why in said, said

    refused("", "A device is needed")
    refused("/dev/nothing", "cannot be opened")
    refused(f"{SSD} 2 colour red", "Unknown option or invalid value")
    refused(f"{SSD} 2 policy fifo", "invalid value")
    refused(f"{SSD} 2 workers 0", "invalid value")
    refused(f"{SSD} 2 workers 65", "invalid value")
    refused(f"{SSD} 2 block_size 1000", "invalid value")
    refused(f"{SSD} 2 cache_size 9T", "invalid value")
    refused(f"{SSD} 2 cache_size 4k9", "invalid value")
    refused(f"{SSD} 2 bypass maybe", "invalid value")
    refused(f"{SSD} 3 workers 2", "number of words")
    refused(f"{SSD} 2 cache_size 100", "must be a block or more")
    refused(f"{btt()} 2 block_size 512", "the device's block size or more")
    refused(f"{SSD} 2 block_size 4096", "no multiple of the block size", 2049)
    refused(f"{SSD}", "smaller than that", 1 << 40)
    cache.create()
    for message in ("flsh", "set policy lru", "set workers 0", "set bypass perhaps", "latency maybe", "set speed high"):
        fails(f"dmsetup message tc 0 {message}")
    cache.message("set workers 3")


def test_options_are_in_the_table(cache):
    """dmsetup table gives a line that creates the same cache, with the options that were set later."""
    cache.create(cache_size="1M", block_size=4096, policy="transit", eager_eviction="off")
    cache.message("set bypass off")
    cache.message("set workers 7")
    table = run("dmsetup table tc").strip()
    assert "12 cache_size 1048576 block_size 4096 workers 7 policy transit eager_eviction off bypass off" in table
    cache.remove()
    run(f"dmsetup create tc --table '{table}'")
    assert run("dmsetup table tc").strip() == table


def test_latencies_and_tracepoints(cache):
    """The latency counters and trace points count, and the sums are those of the phases of a write."""
    cache.create(block_size=BLOCK, cache_size="64K", **STAGED)
    cache.message("latency on")
    run("echo 1 >/sys/kernel/tracing/events/forebay_transit/enable")
    cache.put(0, noise(128 << 10))
    cache.put(0, noise(BLOCK), os.O_DSYNC)
    cache.read(0, 128 << 10)
    cache.flush()
    said = cache.message("latency show")
    trace = Path("/sys/kernel/tracing/trace").read_text(encoding="ascii")
    run("echo 0 >/sys/kernel/tracing/events/forebay_transit/enable; echo >/sys/kernel/tracing/trace")
    phases = {line.split()[0]: line.split()[1:] for line in said.splitlines()}
    for phase in ("metadata", "cache_write", "evict_and_write", "bypass", "enqueue", "flush", "write", "read", "eviction"):
        assert len(phases[phase]) > 1 and int(phases[phase][0]) > 0, said
    parts = sum(int(phases[phase][0]) for phase in ("metadata", "cache_write", "evict_and_write", "enqueue"))
    assert parts <= int(phases["write"][0])
    counted = sum(int(entry.split(":")[1]) for phase in ("cache_write", "evict_and_write") for entry in phases[phase][1:])
    assert counted == 32
    for event in ("dtc_store", "dtc_past", "dtc_evicted", "dtc_drain"):
        assert event in trace


def test_small_pieces_of_a_device(cache):
    """A device that is no multiple of a chunk, in a stack: below a linear target, above one."""
    cache.below = small_device("piece", 1, SSD, 3)
    cache.sectors = 2048 - 8
    cache.create(cache_size="64K", block_size=BLOCK)
    run(f"dmsetup create top --table '0 1032 linear {cache.device} 1000' && dmsetup mknodes")
    verificator(f"mixed /dev/mapper/top {1032 * 512} 4 {WRITES // 2} 4 1 {BLOCK} 65536 {STATE}")
    run("dmsetup remove --retry top")
    assert cache.read(0, MIB - BLOCK) == cache.read(0, MIB - BLOCK)

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-transit over a device that refuses writes or fails flushes: no accepted data are lost, each fsync
reports the error, and the blocks are written when the device is well again."""

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from clock import BY_THE_CLOCK
from mapped import MANY, beside_checker, noise, verificator
from stack import SSD, fails, run
from transit import BLOCK, MIB, POLICIES, STATE, each


def failing(cache, policy="transit"):
    """A cache over a device that can be told to fail."""
    run(f"dmsetup create bad --table '0 {cache.sectors} linear {SSD} 0' && dmsetup mknodes")
    cache.below = "/dev/mapper/bad"
    cache.create(block_size=BLOCK, cache_size="256K", policy=policy)
    cache.write(0, bytes(MIB))
    run("dmesg -C")
    return cache


def fail(cache, fails_now):
    """Makes the device `bad` refuse all I/O, or none."""
    target = "error" if fails_now else f"linear {SSD} 0"
    run(f"dmsetup suspend --noflush --nolockfs bad; dmsetup load bad --table '0 {cache.sectors} {target}'; dmsetup resume bad")


def until(cache, health):
    """Waits until the health is this; a worker changes it a little later."""
    for _ in range(100):
        status = cache.status()
        if status["health"] == health:
            return status
        time.sleep(0.1)
    raise AssertionError(status)


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "none"])
def test_device_fails_for_a_while(cache, policy):
    """Refused blocks stay readable, and every flush fails. When the device is well again they are
    written, and flushes succeed."""
    failing(cache, policy)
    event = int(run("dmsetup info -c --noheadings -o events tc"))
    fail(cache, True)
    cache.put(0, noise(65536))
    for _ in range(2):
        with pytest.raises(OSError):
            cache.flush()
    assert "fail" in cache.message("flush", check=False).lower()
    status = until(cache, "error")
    assert status["health"] == "error" and status["refused"] == 16 and status["failed_flushes"] >= 2, status
    assert status["errors"] >= 16 * 5
    assert int(run("dmsetup info -c --noheadings -o events tc")) > event
    said = run("dmesg")
    assert "refuses sector" in said and "flushes fail meanwhile" in said, said
    assert cache.read(0, 65536) == noise(65536)
    with pytest.raises(OSError):
        cache.put(65536, noise(BLOCK), os.O_DSYNC)
    cache.put(4096, noise(4096, 2))
    fail(cache, False)
    assert until(cache, "ok")["refused"] == 0
    cache.flush()
    assert "takes writes again" in run("dmesg")
    expected = noise(65536)[:4096] + noise(4096, 2) + noise(65536)[8192:]
    assert cache.read(0, 65536, device=SSD) == expected == cache.read(0, 65536)


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "none"])
def test_full_cache_and_dead_device(cache, policy):
    """No task waits for ever: writers get errors, accepted data stay readable, suspend and remove
    return, and the kernel's log names lost data."""
    failing(cache, policy)
    fail(cache, True)
    refused = 0
    for i in range(96):
        try:
            cache.put(i * BLOCK, noise(BLOCK, i))
        except OSError:
            refused += 1
    assert 32 <= refused < 96
    assert cache.read(0, BLOCK) == noise(BLOCK, 0)
    run("dmsetup suspend tc; dmsetup resume tc")
    assert cache.read(0, BLOCK) == noise(BLOCK, 0)
    cache.remove()
    assert "has refused are lost" in run("dmesg")


@BY_THE_CLOCK
def test_newly_refused(cache):
    """A block that is newly refused is tried again at once, although others have been refused for long.
    So a flush needn't wait for the slow tries of those."""
    refusing(cache)
    until(cache, "error")
    cache.put(65536, noise(BLOCK))
    begun = time.monotonic()
    with pytest.raises(OSError):
        cache.flush()
    assert time.monotonic() - begun < 4
    assert cache.status()["refused"] == 17


def test_clean_copy_and_failed_write(cache):
    """The device failed a write past the cache, so its contents are unknown. The cache no longer answers
    reads from its clean copy of the older contents."""
    failing(cache, "coactive")
    cache.put(0, noise(65536))
    cache.flush()
    used = cache.status()["used"]
    fail(cache, True)
    assert cache.read(0, BLOCK) == noise(65536)[:BLOCK]
    with pytest.raises(OSError):
        cache.put(0, noise(BLOCK, 2), os.O_DSYNC)
    assert cache.status()["used"] == used - 1
    with pytest.raises(subprocess.CalledProcessError):
        cache.read(0, BLOCK)


def test_flush_fails_below(cache):
    """A flush that the device fails is counted like a flush that fails because of refused blocks."""
    run("modprobe dm-flakey")
    run(f"dmsetup create flaky --table '0 {cache.sectors} flakey {SSD} 0 0 3600 1 error_writes' && dmsetup mknodes")
    cache.below = "/dev/mapper/flaky"
    cache.create(block_size=BLOCK)
    with pytest.raises(OSError):
        cache.flush()
    assert cache.status()["failed_flushes"] == 1


def test_flush_with_data_fails(cache):
    """A journal's commit is a flush with data. If the device refuses the blocks of a file, but not those
    of the journal, fsync must still fail."""
    failing(cache)
    run(f"mkfs.ext4 -q -F -b 4096 {cache.device} && mkdir -p /tmp/ext4 && mount {cache.device} /tmp/ext4")
    file = Path("/tmp/ext4/file")
    file.write_bytes(noise(65536))
    run("sync")
    first = int(run(f"debugfs -R 'blocks /file' {cache.device} 2>/dev/null").split()[0]) * 8
    table = [(0, first, f"linear {SSD} 0"), (first, 128, "error"),
             (first + 128, cache.sectors - first - 128, f"linear {SSD} {first + 128}")]
    lines = "\n".join(f"{start} {length} {target}" for start, length, target in table)
    run(f"dmsetup suspend --noflush --nolockfs bad; echo '{lines}' | dmsetup load bad; dmsetup resume bad")
    fd = os.open(file, os.O_RDWR)
    os.pwrite(fd, noise(65536, 2), 0)
    os.fchmod(fd, 0o600)        # something for the journal
    with pytest.raises(OSError):
        os.fsync(fd)
    os.close(fd)
    assert cache.status()["failed_flushes"] > 0
    run("umount /tmp/ext4", check=False)
    fail(cache, False)
    until(cache, "ok")
    assert cache.read(first * 512, 65536, device=SSD) == noise(65536, 2)


def flush_failed(cache):
    """Makes a flush fail, on a device that refuses all writes. Returns a function that heals the device
    faster than the 2 seconds to the next try."""
    run("modprobe dm-flakey")
    run(f"dmsetup create bad --table '0 {cache.sectors} flakey {SSD} 0 0 3600 1 error_writes' && dmsetup mknodes")
    cache.below = "/dev/mapper/bad"
    cache.create(block_size=BLOCK)
    run(f"dmsetup load bad --table '0 {cache.sectors} linear {SSD} 0'")
    with pytest.raises(OSError):
        cache.flush()
    return lambda: run("dmsetup suspend --noflush --nolockfs bad; dmsetup resume bad")


@BY_THE_CLOCK
def test_dsync_after_a_failed_flush(cache):
    """FUA writes fail after a failed flush, even when the device is well again. They succeed after a
    while, without another flush by a user."""
    heal = flush_failed(cache)
    data = noise(BLOCK, 2)
    heal()
    with pytest.raises(OSError):
        cache.put(0, data, os.O_DSYNC)
    assert cache.status()["health"] == "error"
    until(cache, "ok")
    cache.put(0, noise(BLOCK), os.O_DSYNC)
    assert cache.read(0, BLOCK, device=SSD) == noise(BLOCK)


def test_refused_once_after_a_failed_flush(cache):
    """A block that is refused meanwhile brings the next try forward. The failed flush is tried again,
    too."""
    heal = flush_failed(cache)
    cache.put(0, noise(BLOCK))
    time.sleep(0.05)
    heal()
    assert cache.status()["errors"] > 0
    until(cache, "ok")
    cache.put(BLOCK, noise(BLOCK), os.O_DSYNC)


def refusing(cache):
    """A cache over a device that has refused the blocks written at the beginning."""
    failing(cache)
    fail(cache, True)
    cache.put(0, noise(65536))
    with pytest.raises(OSError):
        cache.flush()


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "none"])
def test_refused_blocks_stay_over_a_reload(cache, policy):
    """Refused blocks go over to the next table of the mapped device: readable, reported, and each fsync
    fails until they are written."""
    refusing(cache)
    until(cache, "error")
    run("dmesg -C")
    cache.reload(block_size=BLOCK, cache_size="512K", policy=policy)
    status = cache.status()
    assert (status["health"], status["policy"], status["refused"]) == ("error", policy, 16), status
    assert cache.read(0, 65536) == noise(65536)
    for _ in range(2):
        with pytest.raises(OSError):
            cache.flush()
    run("dmsetup suspend tc; dmsetup resume tc")
    assert cache.status()["refused"] == 16
    cache.put(4096, noise(4096, 2))
    assert "are lost" not in run("dmesg")
    fail(cache, False)
    assert until(cache, "ok")["refused"] == 0
    cache.flush()
    expected = noise(65536)[:4096] + noise(4096, 2) + noise(65536)[8192:]
    assert cache.read(0, 65536, device=SSD) == expected == cache.read(0, 65536)


def suspend_with_too_many_refused(cache):
    """Loads a table while the device is well. Then the device refuses more blocks than that table has
    slots, and the cache is suspended."""
    run(f"dmsetup load tc --table '{cache.table(block_size=BLOCK, cache_size='32K')}'")
    fail(cache, True)
    cache.put(0, noise(65536, 2))
    with pytest.raises(OSError):
        cache.flush()
    run("dmsetup suspend tc")


def test_reload_that_has_no_place_for_refused_blocks(cache):
    """A table without space for the refused blocks is refused with the reason, and nothing changes. If
    blocks are refused only after the load, the resume is refused."""
    refusing(cache)
    until(cache, "error")
    for options in ({"block_size": BLOCK, "policy": "none"}, {"block_size": 512}, {"block_size": BLOCK, "cache_size": "32K"}):
        before = cache.options
        said = fails(f"dmsetup load tc --table '{cache.table(**options)}'")
        cache.options = before
        assert "16 blocks that the device below has refused" in said, said
    assert cache.read(0, 65536) == noise(65536)
    fail(cache, False)
    cache.flush()
    suspend_with_too_many_refused(cache)
    said = fails("dmsetup resume tc")
    assert "blocks that the device below has refused" in said and "are lost" not in said, said
    run(f"dmsetup load tc --table '{cache.table(block_size=BLOCK, cache_size='256K')}'; dmsetup resume tc")
    assert cache.read(0, 65536) == noise(65536, 2)
    assert cache.status()["refused"] == 16
    with pytest.raises(OSError):
        cache.flush()
    fail(cache, False)
    until(cache, "ok")
    cache.flush()
    assert cache.read(0, 65536, device=SSD) == noise(65536, 2)


def test_refused_blocks_that_no_table_took(cache):
    """No new table had space for the refused blocks. When the mapped device is removed they are lost,
    and the kernel's log says how many."""
    failing(cache)
    suspend_with_too_many_refused(cache)
    assert "are lost" not in fails("dmsetup resume tc")
    cache.remove()
    said = re.findall(r"(\d+) blocks that .* refused are lost", run("dmesg"))
    assert sum(map(int, said)) == 16, said


def test_failed_flush_stays_over_a_reload(cache):
    """A flush failed, of a device that takes writes. FUA writes fail with the next table, too, until a
    flush has succeeded."""
    run("modprobe dm-flakey")
    half = cache.sectors // 2
    table = f"0 {half} linear {SSD} 0\n{half} {half} flakey {SSD} {half} 0 3600 1 error_writes"
    run(f"echo '{table}' | dmsetup create bad && dmsetup mknodes")
    cache.below = "/dev/mapper/bad"
    cache.create(block_size=BLOCK, cache_size="256K")
    with pytest.raises(OSError):
        cache.flush()
    cache.reload(block_size=BLOCK, cache_size="512K")
    with pytest.raises(OSError):
        cache.put(0, noise(BLOCK), os.O_DSYNC)
    status = cache.status()
    assert (status["health"], status["fua"]) == ("error", 0), status
    fail(cache, False)
    until(cache, "ok")
    cache.put(0, noise(BLOCK), os.O_DSYNC)
    assert cache.read(0, BLOCK, device=SSD) == noise(BLOCK)


def test_discard_forgives(cache):
    """A discard drops the blocks that the device refused: no error is left to report."""
    refusing(cache)
    run(f"dmsetup suspend --noflush --nolockfs bad; dmsetup load bad --table '0 {cache.sectors} linear {SSD} 0'")
    run(f"(sleep 0.3; dmsetup resume bad) & blkdiscard {cache.device}")
    cache.flush()
    assert cache.status()["refused"] == 0


def test_zeroes_keep_what_is_refused(cache):
    """Zeros over a refused block fail. The block stays readable, and is written once the device takes
    it."""
    refusing(cache)
    fails(f"blkdiscard -z -l 65536 {cache.device}")
    assert cache.read(0, 65536) == noise(65536)
    assert cache.status()["refused"] == 16
    fail(cache, False)
    until(cache, "ok")
    cache.flush()
    assert cache.read(0, 65536, SSD) == noise(65536)


def test_suspended_forgets(cache):
    """Clean copies that a policy keeps are dropped by a suspend, since the device below may change while
    suspended."""
    cache.create(block_size=BLOCK, cache_size="256K", policy="coactive")
    cache.put(0, noise(65536))
    cache.flush()
    assert cache.status()["used"] == 16
    run(f"dmsetup suspend tc; dd if=/dev/zero of={SSD} bs=64k count=1 oflag=direct status=none; dmsetup resume tc")
    assert cache.status()["used"] == 0
    assert cache.read(0, 65536) == bytes(65536)


def test_well_again_while_suspended(cache):
    """Suspend writes down the refused blocks, if the device takes them again. The health is reported
    after the resume."""
    failing(cache)
    fail(cache, True)
    cache.put(0, noise(65536))
    until(cache, "error")
    fail(cache, False)
    run("dmsetup suspend tc; dmsetup resume tc")
    until(cache, "ok")
    assert cache.read(0, 65536, SSD) == noise(65536)


@each([{"policy": "transit"}, {"policy": "lru"}, {"policy": "coactive"}])
def test_flaky_device(cache, options):
    """dm-flakey goes up and down beneath overlapping writes, until it has refused some of them several times. All
    acknowledged data are there."""
    cache.sectors = 2048
    run("modprobe dm-flakey")
    run(f"dmsetup create flaky --table '0 2048 flakey {SSD} 0 2 1 1 error_writes' && dmsetup mknodes")
    cache.below = "/dev/mapper/flaky"
    cache.create(cache_size="2M", block_size=BLOCK, **options)      # holds all of it: nothing goes past it

    def refused_again(_number):
        before, end = cache.status()["errors"], time.monotonic() + 60
        while cache.status()["errors"] == before:
            assert time.monotonic() < end, cache.status()
            with contextlib.suppress(OSError):
                cache.flush()       # not each policy writes by itself before the cache is full

    beside_checker(f"mixed {cache.device} {MIB} 21 {MANY} 4 1 {BLOCK} 65536 {STATE}", 3, refused_again)
    run(f"dmsetup suspend --noflush flaky; dmsetup load flaky --table '0 2048 linear {SSD} 0'; dmsetup resume flaky")
    verificator(f"check {cache.device} {STATE}")
    cache.flush()
    cache.remove()
    verificator(f"check {SSD} {STATE}")

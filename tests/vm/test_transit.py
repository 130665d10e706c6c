# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-transit: under every policy, blocks are whole and in order, and all flushed data are on the
device."""

import errno
import mmap
import os
import random
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from logwrites import MARK, entries
from mapped import DEBUG, MANY, VERIFICATOR, beside_checker, logged_device, noise, slow_device, small_device, verificator
from stack import SSD, SSD2, block_name, fails, run
from transit import BTT, POLICIES, VARIANTS, Transit, btt

WRITES = int(os.environ.get("FOREBAY_OPS", "2000")) // 2
ROUNDS = int(os.environ.get("FOREBAY_ROUNDS", "40"))
STATE = "/tmp/verificator.state"
BLOCK, MIB = 4096, 1 << 20
STAGED = {"eager_eviction": "off", "bypass": "off"}


def name_of(variant):
    """For pytest."""
    return "-".join(f"{key}-{value}" if key != "policy" else value for key, value in variant.items())


def each(variants):
    """A test for each of these option sets."""
    return pytest.mark.parametrize("options", variants, ids=name_of)


@pytest.fixture(name="cache")
def cache_fixture():
    """A cache over the NVMe device, not mapped yet."""
    clean_up()
    run("modprobe -r dm-forebay-transit", check=False)
    yield Transit()
    clean_up()


@pytest.fixture(name="over_btt")
def over_btt_fixture(cache):
    """Over a BTT with blocks of 4096 bytes."""
    cache.below = btt()
    return cache


def delayed(cache, milliseconds):
    """Puts a delay on the writes of the device below."""
    cache.below = slow_device(cache.sectors, cache.below, milliseconds)
    return cache


def settled(cache, used=0):
    """Waits until so few slots are in use."""
    for _ in range(100):
        if cache.status()["used"] <= used:
            return
        time.sleep(0.05)
    raise AssertionError(cache.status())


def test_it_is_a_write_cache(over_btt):
    """The block layer must know that it is to be flushed, though a BTT itself needs no flush."""
    over_btt.create()
    queue = Path(f"/sys/block/{block_name(over_btt.device)}/queue")
    said = {name: (queue / name).read_text(encoding="ascii").strip() for name in ("write_cache", "fua", "logical_block_size")}
    assert said == {"write_cache": "write back", "fua": "1", "logical_block_size": "4096"}


def test_buffers_over_a_btt(over_btt):
    """A BTT takes no segment smaller than a block. Buffers with such segments are refused, even where
    the cache could take them."""
    over_btt.create(block_size=BLOCK, cache_size="64K")
    page = mmap.mmap(-1, 3 * BLOCK)
    page[:] = noise(3 * BLOCK)
    for flags in (0, os.O_DSYNC):
        fd = os.open(over_btt.device, os.O_RDWR | os.O_DIRECT | flags)
        try:
            with pytest.raises(OSError) as refused:
                os.pwrite(fd, memoryview(page)[512:512 + BLOCK], 0)
            assert refused.value.errno == errno.EINVAL
            assert os.pwrite(fd, memoryview(page)[BLOCK:], 0) == 2 * BLOCK
        finally:
            os.close(fd)
    assert over_btt.read(0, 2 * BLOCK) == noise(3 * BLOCK)[BLOCK:]


def reads_go_on(cache):
    """Waits until the slots have answered some more reads."""
    before, until = cache.status()["read_hits"], time.monotonic() + 30
    while cache.status()["read_hits"] < before + 100:
        assert time.monotonic() < until, cache.status()
        time.sleep(0.1)


def test_steady_readers(cache):
    """A writer keeps new readers out of its slot, and lets them in again.

    The test can't show that readers would hold up the writer for ever: that takes more processors than a
    test machine has. With two, a reader that isn't running decides how long all this takes.
    """
    cache.create(block_size=BLOCK, cache_size=MIB, **STAGED)
    cache.put(0, noise(65536))
    readers = subprocess.Popen(f"exec fio --name=x --filename={cache.device} --rw=read --bs=64k --size=64k --direct=1 --ioengine=psync "
                               "--numjobs=4 --thread --time_based --runtime=300 >/dev/null", shell=True)
    try:
        reads_go_on(cache)
        begun = time.monotonic()
        for i in range(10):
            cache.put(0, noise(65536, i))
        assert time.monotonic() - begun < 30
        reads_go_on(cache)
        run(f"blkdiscard -l 65536 {cache.device}")
        assert cache.status()["used"] == 0
        assert readers.poll() is None
    finally:
        readers.terminate()
        readers.wait()


@pytest.mark.parametrize("block", [512, 4096])
@pytest.mark.parametrize("on_btt", [True, False])
def test_written_is_read(cache, on_btt, block):
    """From slots, from the device, from both in one read."""
    cache.below = btt(block) if on_btt else SSD
    cache.create(block_size=block, cache_size=MIB, **STAGED)
    assert int(run(f"blockdev --getss {cache.device}")) == block
    cache.write(0, noise(4 * MIB))
    assert cache.status()["used"] == 0
    cache.put(MIB, noise(8192, 2))
    cache.put(MIB + 65536 + block, noise(block, 3))
    expected = bytearray(noise(4 * MIB))
    expected[MIB:MIB + 8192] = noise(8192, 2)
    expected[MIB + 65536 + block:MIB + 65536 + 2 * block] = noise(block, 3)
    assert cache.status()["used"] == 8192 // block + 1
    before = cache.status()["read_hits"]
    assert cache.read(0, 4 * MIB) == expected
    assert cache.status()["read_hits"] - before == 8192 // block + 1
    assert cache.read(0, 4 * MIB, device=cache.below) == noise(4 * MIB)
    cache.remove()
    assert cache.read(0, 4 * MIB, device=cache.below) == expected


@each(VARIANTS)
@pytest.mark.parametrize("on_btt", [True, False])
def test_overlapping_writes(cache, options, on_btt):
    """6 threads write 2 MiB through a cache of 256 KiB, beside readers. Blocks are whole and in order."""
    cache.below = btt() if on_btt else SSD
    cache.create(cache_size="256K", block_size=BLOCK, **options)
    print(verificator(f"whole {cache.device} {2 * MIB} 5 {WRITES} 6 2 {BLOCK} 131072 {STATE}"))
    print(cache.status())
    verificator(f"check {cache.device} {STATE}")
    cache.remove()
    verificator(f"check {cache.below} {STATE}")


@pytest.mark.slow
@each(VARIANTS[:-4])
def test_overlapping_small_blocks(cache, options):
    """The same with blocks of 512 bytes on a BTT."""
    cache.below = btt(512)
    cache.create(cache_size="64K", block_size=512, **options)
    verificator(f"whole {cache.device} {MIB} 6 {WRITES} 6 2 512 65536 {STATE}")
    cache.remove()
    verificator(f"check {cache.below} {STATE}")


@each(VARIANTS)
def test_same_blocks(over_btt, options):
    """Eight writers and four readers at eight blocks: most writes hit a slot that is in use."""
    over_btt.create(cache_size="16K", block_size=BLOCK, **options)
    verificator(f"whole {over_btt.device} 32768 7 {2 * WRITES} 8 4 {BLOCK} 8192 {STATE}")
    if options.get("policy") != "none":
        assert over_btt.status()["write_hits"] > 0
    over_btt.remove()
    verificator(f"check {over_btt.below} {STATE}")


def test_same_blocks_on_a_slow_device(cache):
    """Evictions that take long, so that writers and readers meet them."""
    cache.sectors = 2048
    delayed(cache, 20 if DEBUG else 4).create(cache_size="64K", block_size=BLOCK)
    verificator(f"whole {cache.device} 131072 8 {max(WRITES // 4, 150)} 8 4 {BLOCK} 16384 {STATE}")
    status = cache.status()
    assert status["bypassed"] > 0 and status["read_hits"] > 0 and status["write_hits"] > 0, status
    cache.remove()
    verificator(f"check {SSD} {STATE}")


def test_whole_is_noticed(cache):
    """The checker can fail: writes of 8 KiB to the NVMe device are no whole."""
    cache.create(block_size=BLOCK)
    verificator(f"run {cache.device} {MIB} 5 500 2 0 {BLOCK} 65536 {STATE}")
    cache.write(MIB // 2 + 512, noise(512))
    assert "sector" in verificator(f"check {cache.device} {STATE}", check=False)


@pytest.mark.slow
@each(VARIANTS)
def test_fio_verify(over_btt, options):
    """Mixed sizes, depths and jobs, direct and asynchronous, with fio's own checksums."""
    over_btt.create(cache_size="1M", block_size=BLOCK, **options)
    for jobs, depth, sizes in ((1, 1, "4k-4k"), (2, 16, "4k-64k"), (4, 64, "4k-128k")):
        run(f"fio --name=x --filename={over_btt.device} --direct=1 --ioengine=libaio --rw=randwrite --bsrange={sizes} "
            f"--blockalign=4k --iodepth={depth} --numjobs={jobs} --size=2m --offset_increment=2m --verify=crc32c "
            "--do_verify=1 --verify_fatal=1 --fsync=64")


@each([{"policy": name} for name in POLICIES])
@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_file_system(cache, options, fs):
    """fsync of single bytes beside a tree of files; fsck; also below, when the target has gone."""
    cache.sectors = 400 * 2048
    cache.create(cache_size="2M", block_size=BLOCK, **options)
    run(f"mkfs.{fs} {'-Fq' if fs == 'ext4' else '-fqK'} {cache.device}")
    folder = Path("/mnt/tc")
    folder.mkdir(parents=True, exist_ok=True)
    run(f"mount {cache.device} {folder}")
    try:
        workers = [subprocess.Popen([VERIFICATOR, "bytes", folder / str(i), "65536", str(i), str(WRITES // 20)]) for i in range(3)]
        for i in range(24):
            (folder / f"f{i}").write_bytes(noise(1 << 19, i))
        assert [worker.wait() for worker in workers] == [0] * 3
        run(f"fstrim {folder}")
    finally:
        run(f"umount {folder}")
    cache.remove()
    run("e2fsck -fn " + SSD if fs == "ext4" else "xfs_repair -n " + SSD)
    run(f"mount {SSD} {folder}")
    try:
        assert all((folder / f"f{i}").read_bytes() == noise(1 << 19, i) for i in range(24))
    finally:
        run(f"umount {folder}")


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

    beside_checker(f"whole {cache.device} {MIB} 9 {MANY} 4 1 {BLOCK} 65536 {STATE}", 4, discard)
    cache.remove()
    verificator(f"check {SSD} {STATE}")


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
    """dm-flakey goes up and down beneath overlapping writes; those past the cache may fail. All
    acknowledged data are there."""
    cache.sectors = 2048
    run("modprobe dm-flakey")
    run(f"dmsetup create flaky --table '0 2048 flakey {SSD} 0 2 1 1 error_writes' && dmsetup mknodes")
    cache.below = "/dev/mapper/flaky"
    cache.create(cache_size="2M", block_size=BLOCK, **options)      # holds all of it: nothing goes past it
    verificator(f"whole {cache.device} {MIB} 21 {WRITES} 4 1 {BLOCK} 65536 {STATE}")
    run(f"dmsetup suspend --noflush flaky; dmsetup load flaky --table '0 2048 linear {SSD} 0'; dmsetup resume flaky")
    verificator(f"check {cache.device} {STATE}")
    cache.flush()
    cache.remove()
    verificator(f"check {SSD} {STATE}")


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

    beside_checker(f"whole {cache.device} {4 * MIB} 8 {MANY} 4 1 {BLOCK} 131072 {STATE}", 2 * len(caching), reload)
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
    verificator(f"whole /dev/mapper/top {1032 * 512} 4 {WRITES // 2} 4 1 {BLOCK} 65536 {STATE}")
    run("dmsetup remove --retry top")
    assert cache.read(0, MIB - BLOCK) == cache.read(0, MIB - BLOCK)

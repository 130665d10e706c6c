# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: what of the log reaches the origin, and when. A full log, merged and superseded
writes, zeroes and discards, the cleaner."""

import fcntl
import mmap
import os
import random
import struct
import subprocess
import time
from pathlib import Path

import pytest
from clock import BY_THE_CLOCK
from logwrites import MARK, entries
from mapped import DEBUG, VERIFICATOR, logged_device, noise
from stack import SSD, SSD2, block_name, run
from writelog import DEVICE, MIB, STATE, WRITES, delayed, drain_one, fill_generation

BLKDISCARD, BLKZEROOUT = 0x1277, 0x127F

pytestmark = pytest.mark.persistence


def test_full_log_waits_and_goes_on(log):
    """Writes three times the log's size, through a slow origin. Writers wait, no write fails, and all
    data are right."""
    # Slower than the writers, also on the debug kernel and a busy host.
    delayed(log, 300 if DEBUG else 2).create()
    run(f"fio --name=x --filename={DEVICE} --rw=write --bs=64k --direct=1 --size=48m --ioengine=libaio --iodepth=8 "
        "--verify=crc32c --do_verify=1 --verify_fatal=1")
    status = log.status()
    assert status["space_waits"] > 0
    assert status["health"] == "ok"


def slow_to_read(log, milliseconds):
    """Makes an origin whose reads take long, and whose writes don't. So a read is always in flight, and
    takes no processor time."""
    run("modprobe dm-delay")
    run(f"dmsetup create slow --table '0 {log.sectors} delay {SSD} 0 {milliseconds} {SSD} 0 0' && dmsetup mknodes")
    log.origin = "/dev/mapper/slow"


def reader(where, seconds=600):
    """Starts a process that reads all the time, from the first processor, data that the log doesn't
    hold."""
    return subprocess.Popen(f"exec taskset -c 0 fio --name=x --filename={DEVICE} --direct=1 --rw=randread --bs=4k --offset={where} "
                            f"--size=1m --ioengine=libaio --iodepth=4 --time_based --runtime={seconds} >/dev/null", shell=True)


def drained(log, seed):
    """Seconds that it takes to write some thousand single blocks back while no task waits for that."""
    log.message("set high_mark 99")
    log.message("set low_mark 98")
    run(f"fio --name=x --filename={DEVICE} --direct=1 --rw=randwrite --bs=4k --size=32m --io_size=8m --randseed={seed} >/dev/null")
    before = log.status()
    assert before["used"] >= 8, before
    begun = time.monotonic()
    log.message("set low_mark 10")
    log.message("set high_mark 20")
    while log.status()["used"] > 2:
        assert time.monotonic() < begun + 300, log.status()
        time.sleep(0.01)
    assert log.status()["writeback_bios"] - before["writeback_bios"] > 1000
    return time.monotonic() - begun


@BY_THE_CLOCK
def test_writeback_beside_steady_reads(log):
    """Reads go first, but not for ever: writeback beside them takes a little more than twice as long as
    without them. The best of three rounds counts, since the machine may be busy."""
    slow_to_read(log, 100)
    log.create(block_size=4096)
    rounds = []
    for seed in range(3):
        alone = drained(log, seed)
        steady = reader(48 * MIB)
        try:
            while log.status()["origin_reads"] != 4:
                assert steady.poll() is None
                time.sleep(0.01)
            rounds.append((alone, drained(log, seed + 10)))
            assert steady.poll() is None
        finally:
            steady.terminate()
            steady.wait()
    print(rounds)
    assert min(beside / alone for alone, beside in rounds) < 4, rounds


def test_reads_at_the_origin_are_counted(log):
    """A read that begins on one processor and ends on another changes the counts of both for ever. The
    counts begin where 32 bits would end, on the first and the last processor. So a number too narrow for
    them shows."""
    slow_to_read(log, 1000)
    log.create()
    for processor in sorted(os.sched_getaffinity(0)):
        assert log.status()["origin_reads"] == 0
        reads = [subprocess.Popen(f"exec taskset -c {processor} dd if={DEVICE} of=/dev/null bs=4096 count=1 skip={i} iflag=direct "
                                  "status=none", shell=True) for i in range(3)]
        most = 0
        while any(read.poll() is None for read in reads):
            now = log.status()["origin_reads"]
            assert 0 <= now <= 3, now
            most = max(most, now)
        assert most > 0
    assert log.status()["origin_reads"] == 0


def test_only_newest_versions_are_written(log):
    """An overwritten block is written to the origin once."""
    log.create(high_mark=99, low_mark=98)
    for i in range(100):
        log.write(0, noise(65536, i))
    log.message("flush")
    status = log.status()
    assert status["writeback_sectors"] <= 2 * 128 * 2
    assert status["superseded_sectors"] >= 90 * 128
    assert log.read(0, 65536, device=SSD) == noise(65536, 99)


def test_writeback_merges(log):
    """Neighbours written in any order make large bios."""
    log.create(high_mark=99, low_mark=98)
    for i in sorted(range(128), key=lambda n: n * 79 % 128):
        log.write(i * 4096, noise(4096, i))
    log.message("flush")
    assert log.status()["writeback_bios"] <= 2


def test_neighbours_go_along(log):
    """Two generations have every other block each. The first one's writeback takes the second one's
    along, so that has nothing to write any more. A version that is newer than what was taken along wins,
    before and after replay."""
    log.create(block_size=4096, high_mark=99, low_mark=98)
    for i in range(128):
        log.write(i * 8192, noise(4096, i))
    fill_generation(log)
    for i in range(127):
        log.write(i * 8192 + 4096, noise(4096, 1000 + i))
    fill_generation(log)
    expected = bytearray(b"".join(noise(4096, i) + noise(4096, 1000 + i) for i in range(127)))
    before = log.status()
    drain_one(log)
    first = log.status()
    assert first["along_sectors"] - before["along_sectors"] == 127 * 8
    assert first["writeback_sectors"] - before["writeback_sectors"] == 255 * 8
    assert first["writeback_bios"] - before["writeback_bios"] <= 2
    assert log.read(0, len(expected), device=SSD) == expected
    assert log.read(0, len(expected)) == expected
    expected[4096:8192] = noise(4096, 5000)
    log.write(4096, noise(4096, 5000))
    drain_one(log)
    second = log.status()
    assert second["writeback_sectors"] == first["writeback_sectors"]
    log.again()
    assert log.read(0, len(expected)) == expected
    log.message("flush")
    assert log.read(0, len(expected), device=SSD) == expected


def test_neighbours_in_replay(log):
    """A neighbour that was taken along, and of which the log had an older version, too: after replay it
    is that version, not the older one, whether or not the older one's generation is freed."""
    log.create(block_size=4096, high_mark=99, low_mark=98)
    log.write(0, noise(4096, 1))
    fill_generation(log)
    log.write(4096, noise(4096, 2))
    fill_generation(log)
    log.write(4096, noise(4096, 3))
    fill_generation(log)
    for _ in range(3):
        drain_one(log)
        assert log.read(0, 8192, device=SSD) == noise(4096, 1) + noise(4096, 3)
        log.again()
        assert log.read(0, 8192) == noise(4096, 1) + noise(4096, 3)
    log.message("flush")
    assert log.read(0, 8192, device=SSD) == noise(4096, 1) + noise(4096, 3)


def test_zeroes_and_discard(log):
    """Zeros are zeros, also after replay; what was discarded is not written back."""
    log.create(high_mark=99, low_mark=98)
    log.write(0, noise(2 * MIB))
    before = log.status()["zeroes"]
    run(f"blkdiscard -z -o 8192 -l {MIB} {DEVICE}")
    assert log.status()["zeroes"] > before, "the origin knows no write-zeroes?"
    expected = noise(8192) + bytes(MIB) + noise(2 * MIB)[8192 + MIB:]
    assert log.read(0, 2 * MIB) == expected
    log.again()
    assert log.read(0, 2 * MIB) == expected
    log.write(16384, noise(512, 9))
    expected = expected[:16384] + noise(512, 9) + expected[16384 + 512:]
    assert log.read(0, 2 * MIB) == expected
    log.message("flush")
    assert log.read(0, 2 * MIB, device=SSD) == expected
    log.write(0, noise(2 * MIB, 4))
    run(f"blkdiscard {DEVICE}")
    assert log.status()["regions"] == 0
    log.message("flush")
    assert log.status()["discards"] > 0


def test_zeroes_for_an_origin_that_takes_none(log):
    """The log has zeros and the origin takes no write-zeroes requests: it must be given pages of zeros.
    Parts of pages and runs of many pages are tested, too."""
    log.create(block_size=512, high_mark=99, low_mark=98)
    expected = bytearray(noise(8 * MIB))
    log.write(0, bytes(expected))
    log.message("flush")
    for start, length in ((0, 512), (3584, 1024), (65536 - 512, 8192 + 512), (2 * MIB + 4096, 5 * MIB)):
        run(f"blkdiscard -z -o {start} -l {length} {DEVICE}")
        expected[start:start + length] = bytes(length)
    log.remove()
    delayed(log, 1).create(block_size=512)
    assert Path(f"/sys/block/{block_name(log.origin)}/queue/write_zeroes_max_bytes").read_text(encoding="ascii").strip() == "0"
    assert log.status()["regions"] > 0
    log.message("flush")
    assert log.read(0, 8 * MIB, device=SSD) == expected


@pytest.mark.parametrize("ioctl", [BLKDISCARD, BLKZEROOUT], ids=["discard", "zeroout"])
def test_chunk_of_headers(log, ioctl):
    """One writer makes more entries without data than a chunk has lines: the entries harm no other
    chunk."""
    log.create(high_mark=99, low_mark=98)
    log.write(0, noise(MIB))
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    fd = os.open(DEVICE, os.O_RDWR)
    for i in range(3 * 1024):
        fcntl.ioctl(fd, ioctl, struct.pack("QQ", 8 * MIB + i * 4096, 4096))
    os.close(fd)
    log.write(MIB, noise(MIB, 2))
    os.sched_setaffinity(0, cpus)
    log.again()
    assert log.status()["medium_errors"] == 0
    assert log.read(0, 2 * MIB) == noise(MIB) + noise(MIB, 2)
    log.message("flush")
    assert log.read(0, 2 * MIB, device=SSD) == noise(MIB) + noise(MIB, 2)


def test_one_writer_fills_a_generation(log):
    """One writer can fill a generation though each slot has taken a chunk of it. A chunk that one
    processor has begun, another one continues."""
    log.format("--generations 8 --chunk-size 524288").create(slots=2)
    allowed = os.sched_getaffinity(0)
    assert len(allowed) >= 2, "needs two processors"
    written, began = 0, log.status()["generations"]
    buffer = mmap.mmap(-1, 65536)
    fd = os.open(DEVICE, os.O_RDWR | os.O_DIRECT)
    try:
        for turn in range(4):
            generation = log.status()["generations"]
            for processor in (max(allowed), min(allowed)):
                os.sched_setaffinity(0, {processor})
                os.pwritev(fd, [buffer], 0)
                written += len(buffer)
            while log.status()["generations"] in (generation, generation + (turn == 0)):
                os.pwritev(fd, [buffer], 0)
                written += len(buffer)
    finally:
        os.close(fd)
        os.sched_setaffinity(0, allowed)
    full = (log.status()["generations"] - began - 1) * 3 * 524288      # of 3 chunks each
    print(f"{written * 100 // full} % of {full >> 10} KiB")
    assert written >= full * 0.9, f"{written * 100 // full} % full"


def test_discards_beside_writes(log):
    """Overlapping discards and writes: a read after replay gives what a read before gave, whichever came
    last."""
    log.sectors = 2 * 2048
    for seed in range(5):
        log.create(high_mark=99, low_mark=98)
        load = subprocess.Popen(f"fio --name=w --filename={DEVICE} --direct=1 --rw=randwrite --bs=64k --numjobs=2 --randseed={seed} "
                                f"--size={MIB} --io_size=8m --name=d --filename={DEVICE} --direct=1 --rw=randtrim --bs=32k "
                                f"--randseed={seed} --size={MIB} --io_size=8m", shell=True, stdout=subprocess.DEVNULL)
        assert load.wait() == 0
        log.write(0, noise(4096, seed))
        before = log.read(0, MIB)
        held = log.status()["regions"]
        log.again()
        assert log.status()["regions"] == held > 0
        assert log.read(0, MIB) == before
        log.message("flush")
        log.remove()


def test_cleaner(log):
    """The log becomes a cleaner while writers work. No data are lost, and afterwards all writes go to
    the origin."""
    log.sectors = 8 * 2048
    log.create()
    worker = subprocess.Popen(f"{VERIFICATOR} run {DEVICE} {8 * MIB} 3 {WRITES} 4 1 4096 131072 {STATE}", shell=True)
    time.sleep(1)
    log.message("cleaner")
    assert log.status()["mode"] == "cleaner"
    assert worker.wait() == 0
    status = log.status()
    assert (status["used"], status["regions"]) == (0, 0)
    log.write(0, noise(4096))
    assert log.status()["direct_writes"] > 0
    assert log.read(0, 4096, device=SSD) == noise(4096)
    log.again()
    assert log.status()["mode"] == "write"


def test_order_at_the_origin(log):
    """By dm-log-writes: no sector goes back to an older version, and what `flush` promises has been
    flushed at the origin."""
    log.sectors = 2048
    log.origin = logged_device(log.sectors)
    log.create()
    dice, image, promised = random.Random(7), bytearray(MIB), []
    for number in range(1, 601):
        start, sectors = dice.randrange(2048), dice.randint(1, 256)
        data = (number.to_bytes(8, "big") * 64 * sectors)[:MIB - start * 512]
        image[start * 512:start * 512 + len(data)] = data
        log.write(start * 512, data)
        if number % 120 == 0:
            log.message("flush")
            run(f"dmsetup message logw 0 mark {len(promised)}")
            promised.append(bytes(image))
    assert log.status()["generations"] > 16, "the log was filled less than once"
    log.remove()
    run("dmsetup remove --retry logw")
    check_order(bytearray(MIB), promised)


def check_order(image, promised):
    """Replays the writes that dm-log-writes recorded; each sector begins with the number of the write
    that it is from."""
    marks = 0
    for flags, sector, data in entries(SSD2):
        if flags & MARK:
            if data.isdigit():
                wrong = [i // 512 for i in range(0, MIB, 512) if image[i:i + 512] != promised[int(data)][i:i + 512]]
                assert not wrong, f"mark {data}"
                marks += 1
            continue
        for at in range(0, len(data), 512):
            where = sector * 512 + at
            assert data[at:at + 8] >= image[where:where + 8], f"sector {where // 512} went back"
            image[where:where + 512] = data[at:at + 512]
    assert marks == len(promised)

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: acknowledged writes are there, whatever the origin does, and in the order of
their acknowledgment."""

import fcntl
import json
import mmap
import os
import random
import re
import struct
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from logwrites import MARK, entries
from mapped import DEBUG, MANY, VERIFICATOR, beside_checker, logged_device, noise, slow_device, small_device, verificator
from stack import PMEM, SSD, SSD2, block_name, fails, run
from writelog import DEVICE, NAME, Log

WRITES = int(os.environ.get("FOREBAY_OPS", "2000"))
SECONDS = int(os.environ.get("FOREBAY_SECONDS", "30"))
STATE = "/tmp/verificator.state"
MIB = 1 << 20
BLKDISCARD, BLKZEROOUT = 0x1277, 0x127F

pytestmark = pytest.mark.persistence


@pytest.fixture(name="log")
def log_fixture():
    """A log of 16 MiB over 64 MiB of the SSD."""
    clean_up()
    run("modprobe -r dm-forebay-writelog", check=False)
    log = Log(cache=small_device("small", 16, PMEM)).format()
    yield log
    clean_up()


def delayed(log, milliseconds):
    """Puts a delay on the origin's writes."""
    log.origin = slow_device(log.sectors, SSD, milliseconds)
    return log


def test_written_is_read(log):
    """From the log, from the origin, from both in one read."""
    log.create()
    log.write(0, noise(4 * MIB))
    log.message("flush")
    assert log.status()["used"] == 0
    log.write(MIB, noise(8192, 2))
    log.write(MIB + 65536, noise(512, 3))
    expected = bytearray(noise(4 * MIB))
    expected[MIB:MIB + 8192] = noise(8192, 2)
    expected[MIB + 65536:MIB + 65536 + 512] = noise(512, 3)
    assert log.read(0, 4 * MIB) == expected
    assert 0 < log.status()["read_hit_sectors"] < 8 * 2048
    assert log.read(0, 4 * MIB, device=SSD) == noise(4 * MIB)
    log.message("flush")
    assert log.read(0, 4 * MIB, device=SSD) == expected


def test_no_write_cache_is_advertised(log):
    """A write that has completed is durable: no flush comes down, and none goes to the origin."""
    log.create()
    assert Path(f"/sys/block/{block_name(DEVICE)}/queue/write_cache").read_text().strip() == "write through"
    before = flushes(SSD)
    for i in range(50):
        log.write(i * 4096, noise(4096, i))
    assert flushes(SSD) == before


def flushes(device):
    """How many a device has had."""
    return int(Path(f"/sys/block/{os.path.basename(device)}/stat").read_text(encoding="ascii").split()[15])


def test_dirty_log_is_replayed(log):
    """Removes a dirty log and creates it again, several times: all data are there."""
    log.create(high_mark=99, low_mark=98)
    log.write(0, noise(6 * MIB))
    for life in range(3):
        log.again()
        assert log.status()["used"] > 0
        assert log.read(0, 6 * MIB) == noise(6 * MIB)
        log.write(life * 4096, noise(4096, 1) if not life else noise(6 * MIB)[life * 4096:life * 4096 + 4096])
    log.message("flush")
    log.again()
    assert log.status()["regions"] == 0
    assert log.read(0, 6 * MIB) == noise(6 * MIB)


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("least, most", [(512, MIB), (4096, 65536)])
def test_overlapping_writes(log, delay, least, most):
    """6 threads write to a 1 MiB origin beside readers; then the same through replay."""
    log.sectors = 2048
    if delay:
        delayed(log, delay)
    log.create()
    print(verificator(f"run {DEVICE} {MIB} {delay + least} {WRITES} 6 2 {least} {most} {STATE}"))
    print(log.status())
    verificator(f"check {DEVICE} {STATE}")
    log.again()
    verificator(f"check {DEVICE} {STATE}")
    log.message("flush")
    verificator(f"check {SSD} {STATE}")


def test_replay_without_writeback(log):
    """As in the thesis, nothing is written back until the log is nearly full; replay must keep the
    order."""
    log.cache = small_device("other", 40, PMEM, 20)
    log.format().sectors = 2048
    log.create(high_mark=99, low_mark=98)
    verificator(f"run {DEVICE} {MIB} 77 {min(WRITES, 400)} 6 0 512 65536 {STATE}")
    assert log.status()["writeback_sectors"] == 0
    assert "sector" in verificator(f"check {SSD} {STATE}", check=False)
    log.again()
    verificator(f"check {DEVICE} {STATE}")


def test_verificator_notices(log):
    """The checker can fail: it must notice wrong contents."""
    log.sectors = 2048
    log.create()
    verificator(f"run {DEVICE} {MIB} 5 1000 2 0 512 65536 {STATE}")
    log.write(MIB // 2, bytes(512))
    log.write(4096, noise(512))
    assert verificator(f"check {DEVICE} {STATE}", check=False).count("sector") >= 2


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_file_system(log, fs):
    """fsync of single bytes, a tree of files, fsck; the log small enough to be full again and again."""
    log.sectors = 400 * 2048
    log.create()
    run(f"mkfs.{fs} {'-Fq' if fs == 'ext4' else '-fq'} {DEVICE}")
    Path("/mnt/wl").mkdir(parents=True, exist_ok=True)
    run(f"mount {DEVICE} /mnt/wl")
    try:
        workers = [subprocess.Popen([str(VERIFICATOR), "bytes", f"/mnt/wl/{i}", "65536", str(i), "300"]) for i in range(4)]
        for i in range(40):
            Path(f"/mnt/wl/f{i}").write_bytes(noise(1 << 19, i))
        assert [worker.wait() for worker in workers] == [0] * 4
        os.sync()
    finally:
        run("umount /mnt/wl")
    run("e2fsck -fn " + DEVICE if fs == "ext4" else "xfs_repair -n " + DEVICE)
    log.again()
    run("echo 3 >/proc/sys/vm/drop_caches")
    run(f"mount {DEVICE} /mnt/wl")
    try:
        for i in range(40):
            assert Path(f"/mnt/wl/f{i}").read_bytes() == noise(1 << 19, i)
    finally:
        run("umount /mnt/wl")
    log.message("flush")
    log.remove()
    run("e2fsck -fn " + SSD if fs == "ext4" else "xfs_repair -n " + SSD)


def test_full_log_waits_and_goes_on(log):
    """Writes three times the log's size, through a slow origin. Writers wait, no write fails, and all
    data are right."""
    # Slower than the writers, also on the debug kernel.
    delayed(log, 20 if DEBUG else 2).create()
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


def error_table(fails_now, sectors):
    """Makes the origin `bad` refuse all I/O, or none."""
    target = "error" if fails_now else f"linear {SSD} 0"
    run(f"dmsetup suspend --noflush --nolockfs bad; dmsetup load bad --table '0 {sectors} {target}'; dmsetup resume bad")


def test_origin_fails_for_a_while(log):
    """The data stay in the log, the log reports the error, and writes the data when the origin can take
    them."""
    run(f"dmsetup create bad --table '0 {log.sectors} linear {SSD} 0' && dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    log.create()
    log.write(0, noise(MIB))
    error_table(True, log.sectors)
    run("dmesg -C")
    assert "error" in log.message("flush", check=False).lower()
    assert log.status()["health"] == "error"
    assert "cannot write back to origin" in run("dmesg")
    assert "error" in log.message("cleaner", check=False).lower()
    assert log.status()["mode"] == "write", "a cleaner that didn't come about"
    assert log.read(0, MIB) == noise(MIB)
    log.write(4096, noise(4096, 2))
    assert log.status()["used"] >= 1
    error_table(False, log.sectors)
    for _ in range(100):
        if log.status()["health"] == "ok":
            break
        time.sleep(0.1)
    log.message("flush")
    assert "is written back" in run("dmesg")
    expected = noise(MIB)[:4096] + noise(4096, 2) + noise(MIB)[8192:]
    assert log.read(0, MIB, device=SSD) == expected


def write_until_refused():
    """Writes segments of 64 KiB to the device, from its beginning, until one fails. Returns how many
    writes succeeded."""
    done = 0
    fd = os.open(DEVICE, os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 65536)
    try:
        with pytest.raises(OSError):
            for done in range(64 * MIB // 65536):
                page[:] = noise(65536, done)
                os.pwrite(fd, page, done * 65536)
    finally:
        os.close(fd)
    return done


def test_full_log_and_dead_origin(log):
    """Writes are refused after error_timeout, and taken again when the origin is back. No acknowledged
    data are lost."""
    run(f"dmsetup create bad --table '0 {log.sectors} linear {SSD} 0' && dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    log.create(error_timeout=1)
    error_table(True, log.sectors)
    done = write_until_refused()
    assert done * 65536 > 8 * MIB, "the log was not used up"
    assert log.status()["health"] == "failed"
    assert log.read(0, done * 65536) == b"".join(noise(65536, i) for i in range(done))
    error_table(False, log.sectors)
    log.message("flush", check=False)
    time.sleep(5)
    log.message("flush")
    assert log.status()["health"] == "ok"
    log.write(0, noise(4096, 3))
    assert log.read(4096, 4096) == noise(65536, 0)[4096:8192]


BAD, BADS = 128, 8      # sectors that refusing() has


def refusing(log):
    """Makes an origin `bad` that refuses a few sectors for good."""
    table = [(0, BAD, f"linear {SSD} 0"), (BAD, BADS, "error"),
             (BAD + BADS, log.sectors - BAD - BADS, f"linear {SSD} {BAD + BADS}")]
    lines = "\n".join(f"{start} {length} {target}" for start, length, target in table)
    verb = "dmsetup suspend --noflush --nolockfs bad; dmsetup load" if Path("/dev/mapper/bad").exists() else "dmsetup create"
    run(f"echo '{lines}' | ({verb} bad); dmsetup resume bad; dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    return log


def resolved(log):
    """Waits until no block is refused any more; refused blocks are tried again every few seconds."""
    for _ in range(300):
        if log.status()["health"] == "ok":
            break
        time.sleep(0.1)
    assert (log.status()["health"], log.status()["refused"]) == ("ok", 0), log.status()


def test_refused_block_is_set_aside(log):
    """The origin refuses one block for good. The rest of its generation is written, and so is what comes
    later; space becomes free.

    The block stays in the log, even over a restart and when it is overwritten. When the origin takes the
    block, it is there.
    """
    refusing(log).create(block_size=4096)
    log.write(0, noise(MIB))
    run("dmesg -C")
    assert "error" in log.message("flush", check=False).lower()
    status = log.status()
    assert (status["health"], status["refused"], status["used"]) == ("error", 1, 1), status
    said = run("dmesg")
    assert f"refuses sector {BAD}" in said and "1 blocks that origin" in said, said
    expected = bytearray(noise(MIB))
    assert log.read(0, MIB) == expected
    assert log.read(0, BAD * 512, device=SSD) == expected[:BAD * 512]
    assert log.read((BAD + BADS) * 512, MIB - (BAD + BADS) * 512, device=SSD) == expected[(BAD + BADS) * 512:]
    run(f"fio --name=x --filename={DEVICE} --rw=write --bs=64k --direct=1 --offset=1m --size=60m --ioengine=libaio --iodepth=8 "
        "--verify=crc32c --do_verify=1 --verify_fatal=1")
    status = log.status()
    assert (status["health"], status["refused"]) == ("error", 1), status
    for life in range(2):
        assert log.read(0, MIB) == expected
        log.again()
        assert log.read(0, MIB) == expected
        expected[BAD * 512:(BAD + BADS) * 512] = noise(4096, life + 10)
        log.write(BAD * 512, noise(4096, life + 10))
        assert "error" in log.message("flush", check=False).lower()
        assert (log.status()["refused"], log.status()["used"]) == (1, 1)
    assert "cannot write back" not in run("dmesg")
    error_table(False, log.sectors)
    resolved(log)
    assert "nothing is left" in run("dmesg")
    log.message("flush")
    assert log.status()["used"] == 0
    assert log.read(0, MIB, device=SSD) == expected == log.read(0, MIB)


def test_refused_block_is_discarded(log):
    """A discarded refused block leaves the log empty, although the origin has its old contents."""
    refusing(log).create(block_size=4096)
    log.write(0, noise(MIB))
    log.message("flush", check=False)
    assert log.status()["refused"] == 1
    log.remove()
    assert "keeps 1 blocks" in run("dmesg")
    log.create()
    run(f"blkdiscard -z -o {BAD * 512} -l 4096 {DEVICE}")
    log.message("flush", check=False)
    assert log.status()["refused"] == 1
    assert log.read(BAD * 512, 4096) == bytes(4096)
    # The origin fails the discard, which it is told of, too; the log has none of the block any more.
    run(f"blkdiscard -o {BAD * 512} -l 4096 {DEVICE}", check=False)
    log.message("flush")
    assert (log.status()["health"], log.status()["refused"], log.status()["used"]) == ("ok", 0, 0)


def test_refused_blocks_are_not_overtaken(log):
    """Writers overwrite refused blocks, while these are logged again and again. The newest version stays
    the newest, also after replay."""
    log.sectors = 2048
    refusing(log).create(block_size=512)
    log.write(0, bytes(MIB))

    def flush(_number):
        log.message("flush", check=False)       # fails, unless all that is refused has been overwritten meanwhile

    beside_checker(f"run {DEVICE} {MIB} 11 {MANY} 6 2 512 65536 {STATE}", 12, flush)
    assert "error" in log.message("flush", check=False).lower()
    assert log.status()["refused"] == BADS, log.status()
    verificator(f"check {DEVICE} {STATE}")
    log.again()
    verificator(f"check {DEVICE} {STATE}")
    log.message("flush", check=False)
    verificator(f"check {DEVICE} {STATE}")
    error_table(False, log.sectors)
    log.message("flush", check=False)
    resolved(log)
    log.message("flush")
    verificator(f"check {SSD} {STATE}")


def test_refused_block_in_a_full_log(log):
    """The origin was away until the log was full, and refuses a block when it is back. The log still has
    space to go on."""
    run(f"dmsetup create bad --table '0 {log.sectors} error' && dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    log.create(block_size=4096, error_timeout=1)
    done = write_until_refused()
    status = log.status()
    assert status["used"] == status["generations_in_all"] - 1, status
    refusing(log)
    for _ in range(300):
        if log.status()["used"] <= status["generations_in_all"] // 2:
            break
        time.sleep(0.1)
    assert log.status()["refused"] == 1
    log.write(48 * MIB, noise(8 * MIB, 3))
    log.message("flush", check=False)
    assert (log.status()["refused"], log.status()["used"]) == (1, 1)
    assert log.read(0, done * 65536) == b"".join(noise(65536, i) for i in range(done))
    log.again()
    assert log.read(0, done * 65536) == b"".join(noise(65536, i) for i in range(done))


def test_flaky_origin(log):
    """dm-flakey up and down beneath overlapping writes."""
    run("modprobe dm-flakey")
    run(f"dmsetup create flaky --table '0 2048 flakey {SSD} 0 1 1 1 error_writes' && dmsetup mknodes")
    log.origin, log.sectors = "/dev/mapper/flaky", 2048
    log.create()
    verificator(f"run {DEVICE} {MIB} 21 {WRITES} 4 0 512 131072 {STATE}")
    run(f"dmsetup suspend --noflush flaky; dmsetup load flaky --table '0 2048 linear {SSD} 0'; dmsetup resume flaky")
    for _ in range(20):
        if "error" not in log.message("flush", check=False).lower():
            break
        time.sleep(0.5)
    verificator(f"check {DEVICE} {STATE}")
    verificator(f"check {SSD} {STATE}")


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


def test_suspend_resume_reload_under_load(log):
    """Suspended and resumed, and another table loaded, while verificator works."""
    log.sectors = 4 * 2048
    log.create()

    def reload(number):
        run(f"dmsetup suspend {NAME}; dmsetup resume {NAME}")
        log.reload(depth=4 + number % 8)

    beside_checker(f"run {DEVICE} {4 * MIB} 8 {MANY} 4 0 512 131072 {STATE}", 8, reload)
    verificator(f"check {DEVICE} {STATE}")


def test_suspend_ends_a_flush(log):
    """Suspend holds up all bios until every user has left the table. So it doesn't wait until a flush
    message has written the whole log back, but ends it as busy."""
    delayed(log, 2000).create(high_mark=99, low_mark=98)
    log.write(0, noise(12 * MIB))
    flush = subprocess.Popen(f"dmsetup message {NAME} 0 flush", shell=True, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    assert flush.poll() is None
    run(f"dmsetup suspend {NAME}")
    assert "busy" in flush.communicate()[1] and flush.returncode
    assert "busy" in fails(f"dmsetup message {NAME} 0 flush")
    run(f"dmsetup resume {NAME}")
    assert log.status()["used"] > 0
    assert log.read(0, 12 * MIB) == noise(12 * MIB)


def test_reload_with_another_size(log):
    """The origin grows with data in the log; it shrinks only if no data would be cut off."""
    log.create(high_mark=99, low_mark=98)
    log.write(32 * MIB, noise(MIB))
    log.sectors = 128 * 2048
    log.reload()
    log.write(100 * MIB, noise(MIB, 2))
    assert log.read(32 * MIB, MIB) == noise(MIB)
    assert log.read(100 * MIB, MIB) == noise(MIB, 2)
    log.remove()
    log.sectors = 64 * 2048
    assert "beyond the device's end" in fails(f"dmsetup create {NAME} --table '{log.table()}'")
    run(f"dmsetup remove {NAME}", check=False)
    log.sectors = 128 * 2048
    log.create()
    log.message("flush")
    log.remove()
    log.sectors = 64 * 2048
    log.create()
    assert log.read(32 * MIB, MIB) == noise(MIB)


def test_other_block_sizes(log):
    """Blocks of 4096 bytes: smaller I/O is refused, and a log with smaller blocks isn't taken."""
    log.create(block_size=4096, high_mark=99, low_mark=98)
    assert run(f"blockdev --getss {DEVICE}").strip() == "4096"
    log.write(0, noise(MIB))
    assert log.read(0, MIB) == noise(MIB)
    log.again()
    assert log.read(0, MIB) == noise(MIB)
    log.remove()
    log.create(block_size=512, high_mark=99, low_mark=98)
    Path("/tmp/sector").write_bytes(noise(512, 2))
    run(f"dd if=/tmp/sector of={DEVICE} bs=512 seek=1 oflag=direct conv=notrunc")
    log.remove()
    assert "blocks smaller than block_size" in fails(f"dmsetup create {NAME} --table '{log.table(block_size=4096)}'")
    run(f"dmsetup remove {NAME}", check=False)
    log.create(block_size=512)
    assert log.read(0, 1024) == noise(512) + noise(512, 2)


def test_what_is_refused(log):
    """Each with its reason."""
    run("modprobe dm-forebay-writelog")
    blank = small_device("blank", 8, PMEM, 20)
    run(f"dd if=/dev/zero of={blank} bs=1M count=8 conv=fsync status=none")
    create = f"dmsetup create {NAME} --table"

    def refused(words, why):
        said = fails(f"{create} '0 {log.sectors} forebay-wlog {words}'")
        assert why in said, said

    refused(f"{SSD} {blank}", "no write log yet")
    run(f"mkfs.ext4 -Fq {blank}")
    refused(f"{SSD} {blank}", "something that is no write log")
    run(f"forebay format --force {blank}")
    refused(f"{SSD} {blank}", "forebay file system")
    refused(f"{SSD} {SSD2}", "has no DAX")
    refused(f"{SSD}", "Two devices are needed")
    refused(f"{log.cache} {log.cache}", "are the same")
    refused(f"{SSD} {log.cache} 2 slots 0", "invalid value")
    refused(f"{SSD} {log.cache} 2 colour red", "Unknown option or invalid value")
    refused(f"{SSD} {log.cache} 3 slots 2", "number of words")
    refused(f"{SSD} {log.cache} 4 low_mark 50 high_mark 50", "low_mark must be below")
    refused(f"{SSD} {log.cache} 2 block_size 256", "invalid value")
    log.create()
    said = fails(f"dmsetup create other --table '0 2048 forebay-wlog {SSD2} {log.cache}'")
    assert "in use by another" in said, said
    for message in ("flsh", "set slots 3", "set depth 0", "set high_mark 10", "latency maybe"):
        fails(f"dmsetup message {NAME} 0 {message}")
    log.message("set depth 3")
    assert log.read(0, 512) is not None


def test_one_memory_under_two_names(log):
    """A second device over the memory of a log in use can't be another log, wherever it begins. A device
    beside that memory can."""
    log.create()
    alias = small_device("alias", 16, PMEM)
    said = fails(f"dmsetup create other --table '0 2048 forebay-wlog {SSD2} {alias}'")
    assert "in use by another device" in said and f"in use already, as the log {block_name(log.cache)} of" in said, said
    beside = small_device("beside", 16, PMEM, 16)
    run(f"forebay writelog format --force {beside}")
    run(f"dmsetup create other --table '0 2048 forebay-wlog {SSD2} {beside}'")
    log.write(0, noise(MIB))
    log.again()                     # what it had is free again
    assert log.read(0, MIB) == noise(MIB)
    run("dmsetup remove other")


def test_options_are_in_the_table(log):
    """dmsetup table gives a line that creates the same."""
    log.create(slots=3, depth=7, on_damage="skip", origin_id="ab" * 64)
    table = run(f"dmsetup table {NAME}").strip()
    assert "8 slots 3 depth 7 on_damage skip origin_id " + "ab" * 64 in table
    log.remove()
    run(f"dmsetup create {NAME} --table '{table}'")
    assert run(f"dmsetup table {NAME}").strip() == table


def test_another_origin(log):
    """A log that holds writes is not taken for another origin."""
    log.create(origin_id="01")
    log.write(0, noise(4096))
    log.remove()
    assert "another origin" in fails(f"dmsetup create {NAME} --table '{log.table(origin_id='02')}'")
    run(f"dmsetup remove {NAME}", check=False)
    log.create(origin_id="01")
    log.message("flush")
    log.remove()
    log.create(origin_id="02")


def refused(log, **options):
    """The error of creating the device, which must fail."""
    said = fails(f"dmsetup create {NAME} --table '{log.table(**options)}'")
    run(f"dmsetup remove {NAME}", check=False)
    log.options = {}
    return said


def change(device, kib, data):
    """Writes to the origin past the log."""
    subprocess.run(f"dd of={device} bs=4k seek={kib // 4} iflag=fullblock oflag=direct conv=notrunc status=none", shell=True, input=data,
                   check=True)


def fingerprint(log):
    """The fingerprint of the origin's beginning that a log keeps; the log is not in use."""
    shown, = json.loads(run(f"forebay writelog status --json {log.cache}"))
    return shown["origin_fingerprint"]


def test_changed_origin_is_refused(log):
    """A log that holds writes refuses another disk of the same size, and a disk that was changed without
    the log. With any_origin it takes them."""
    change(SSD, 0, noise(MIB, 8))
    change(SSD2, 0, noise(MIB, 9))
    log.create().write(8 * MIB, noise(8192))
    log.remove()
    log.origin = SSD2
    assert "another disk, or was changed without the log" in refused(log)
    assert re.fullmatch("[0-9a-f]{8}", fingerprint(log))
    log.origin = SSD
    change(SSD, 1020, noise(4096, 2))
    assert "another disk, or was changed without the log" in refused(log)
    said = fails(f"forebay writelog create {NAME} {small_device('part', log.sectors // 2048, SSD)} {log.cache}")
    assert "began with other data" in said and "--any-origin" in said, said
    run("dmsetup remove part")
    change(SSD, 1020, noise(MIB, 8)[1020 * 1024:])
    log.create()
    log.remove()
    change(SSD, 1024, noise(4096, 3))       # what lies behind isn't looked at
    change(SSD, 0, noise(4096, 4))
    run(f"dmsetup create {NAME} --table '{log.table(any_origin=1)}'")
    assert "any_origin" not in run(f"dmsetup table {NAME}")
    assert log.read(0, 4096) == noise(4096, 4) and log.read(8 * MIB, 8192) == noise(8192)
    log.options = {}
    log.again()


def test_empty_log_takes_a_changed_origin(log):
    """When all data have been written back, the origin may be changed without the log."""
    log.create().write(0, noise(MIB))
    log.message("flush")
    log.remove()
    assert fingerprint(log) == "none"       # an older Forebay takes it, too
    change(SSD, 0, noise(4096, 2))
    log.create()
    assert log.read(0, 4096) == noise(4096, 2)
    log.write(MIB, noise(4096))
    run(f"dmsetup suspend {NAME}; dmsetup resume {NAME}")
    log.write(2 * MIB, noise(4096))
    log.remove()
    assert fingerprint(log) not in ("none", "changing")
    change(SSD, 0, noise(4096, 3))
    assert "changed without the log" in refused(log)


def test_fingerprint_follows_writeback(log):
    """Writeback, discards and a reload change the origin's first MiB; the log still takes the origin."""
    log.create()
    for turn in range(4):
        log.write(turn * 4096, noise(128 * 1024, turn))
        log.write(0, noise(512, turn))
        log.message("flush")
        log.write(4096 * 7, noise(16384, turn + 10))
        log.write(20 * MIB, noise(4096))
        run(f"blkdiscard -o 65536 -l {2 * MIB} {DEVICE}")
        expected = log.read(0, 65536)
        if turn == 2:
            log.reload(slots=2)
        log.again()
        assert log.read(0, 65536) == expected
    log.remove()
    assert fingerprint(log) not in ("none", "changing")
    change(SSD, 512, noise(4096))
    assert "changed without the log" in refused(log)


def test_origin_that_was_left_half_written(log):
    """While writeback writes to the origin's first MiB, its fingerprint is unknown. The log is taken for
    such an origin, and the writeback finished."""
    delayed(log, 1000).create(depth=1)          # 8 of the 64 at a time
    for block in range(64):
        log.write(block * 16384, noise(4096, block))
    expected = log.read(0, MIB)
    with subprocess.Popen(f"dmsetup message {NAME} 0 flush", shell=True, stderr=subprocess.DEVNULL) as flush:
        deadline = time.monotonic() + 60
        while not log.status()["writeback_bios"] and time.monotonic() < deadline:
            time.sleep(0.01)
        run(f"dmsetup suspend {NAME}")
        flush.wait()
    log.remove()
    assert fingerprint(log) == "changing"
    log.origin = SSD
    log.create()
    assert log.read(0, MIB) == expected
    log.message("flush")
    log.remove()
    assert log.read(0, MIB, device=SSD) == expected


def test_latencies_and_tracepoints(log):
    """They count."""
    log.create()
    log.message("latency on")
    run("echo 1 >/sys/kernel/tracing/events/forebay_writelog/enable")
    log.write(0, noise(MIB))
    log.read(0, MIB)
    log.message("flush")
    said = log.message("latency show")
    trace = Path("/sys/kernel/tracing/trace").read_text(encoding="ascii")
    run("echo 0 >/sys/kernel/tracing/events/forebay_writelog/enable; echo >/sys/kernel/tracing/trace")
    for phase in ("write", "copy", "index", "read", "writeback", "flush"):
        assert any(line.split()[0] == phase and len(line.split()) > 1 for line in said.splitlines()), said
    for event in ("dwl_append", "dwl_gen_open", "dwl_writeback", "dwl_gen_free"):
        assert event in trace


def test_create_and_remove_under_load(log):
    """The device is removed when its last user has ended, and created again. Each time acknowledged data
    are there."""
    rounds = int(os.environ.get("FOREBAY_ROUNDS", "40"))
    log.sectors = 2048
    log.create()
    checked = 0
    for i in range(rounds):
        worker = subprocess.Popen(f"{VERIFICATOR} run {DEVICE} {MIB} {i} 60 3 1 512 65536 {STATE}", shell=True)
        used = log.remove_after(worker)
        log.create()
        if used:
            verificator(f"check {DEVICE} {STATE}")
            checked += 1
    assert checked > rounds // 2


def test_nowait(log):
    """A request by io_uring that would have to wait gets EAGAIN, and is issued again."""
    delayed(log, 2).create()
    run(f"fio --name=x --filename={DEVICE} --rw=randwrite --bs=16k --direct=1 --size=40m --ioengine=io_uring --iodepth=16 "
        "--verify=crc32c --do_verify=1 --verify_fatal=1")
    assert log.status()["health"] == "ok"

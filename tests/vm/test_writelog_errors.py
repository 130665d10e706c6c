# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog over an origin that fails, or refuses blocks for good: acknowledged writes stay in the
log until the origin has them."""

import mmap
import os
import subprocess
import time

import pytest
from mapped import MANY, beside_checker, noise, verificator
from stack import SSD, run
from writelog import (BAD, BADS, DEVICE, MIB, NAME, SECONDS, SLOWLY, STATE, drain_one, error_table, fill_generation,
                      refusing, refusing_slowly, resolved)

pytestmark = pytest.mark.persistence


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


def write_until_refused(first=0):
    """Writes segments of 64 KiB to the device, from the segment `first` on, until one fails. Returns how
    many writes succeeded."""
    done = 0
    fd = os.open(DEVICE, os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 65536)
    try:
        with pytest.raises(OSError):
            for done in range(64 * MIB // 65536 - first):
                page[:] = noise(65536, done)
                os.pwrite(fd, page, (first + done) * 65536)
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


def wait_for(condition, seconds):
    """Waits until a condition holds, at most so long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, run("dmsetup status; dmesg | tail")
        time.sleep(0.1)


def test_refused_neighbour_delays_nothing(log):
    """A block of a younger generation that the origin refuses lies beside one of the oldest. The oldest
    is written and freed without it, and nothing fails before the block's own generation is written."""
    refusing(log).create(block_size=4096, high_mark=99, low_mark=98)
    log.write(BAD * 512 - 4096, noise(4096, 1))
    fill_generation(log)
    log.write(BAD * 512, noise(4096, 2))
    fill_generation(log)
    drain_one(log)
    status = log.status()
    assert (status["health"], status["refused"], status["origin_errors"], status["along_sectors"]) == ("ok", 0, 0, 0), status
    assert log.read(BAD * 512 - 4096, 4096, device=SSD) == noise(4096, 1)
    assert "error" in log.message("flush", check=False).lower()
    assert log.status()["refused"] == 1
    assert log.read(BAD * 512, 4096) == noise(4096, 2)


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


def share_of_progress(log, seconds):
    """The share of the time in which writeback makes progress beside a writer that never pauses."""
    samples = []
    command = f"fio --name=x --filename={DEVICE} --rw=write --bs=64k --direct=1 --offset=1m --size=60m --time_based --runtime={seconds}"
    with subprocess.Popen(command.split(), stdout=subprocess.DEVNULL) as writer:
        while writer.poll() is None:
            samples.append(log.status()["writeback_sectors"])
            time.sleep(0.5)
    assert writer.returncode == 0
    return sum(a < b for a, b in zip(samples, samples[1:])) / (len(samples) - 1)


def test_slowly_refused_blocks(log):
    """The origin takes seconds to refuse each of a few blocks. They are reported as soon as the first is
    found. When all are found, the rest is written back most of the time."""
    refusing_slowly(log).create(block_size=4096, error_timeout=60, high_mark=20, low_mark=10)
    log.write(0, noise(MIB))
    begin = time.monotonic()
    flush = subprocess.Popen(f"dmsetup message {NAME} 0 flush", shell=True, stderr=subprocess.DEVNULL)
    wait_for(lambda: log.status()["health"] == "error", 3 * SECONDS)
    assert time.monotonic() - begin < 3.5 * SECONDS
    wait_for(lambda: log.status()["refused"] == len(SLOWLY), 20 * SECONDS)
    flush.wait()
    share = share_of_progress(log, 7 * SECONDS)
    assert share > 0.5, share
    status = log.status()
    assert (status["health"], status["refused"]) == ("error", len(SLOWLY)), status
    assert log.read(0, MIB) == noise(MIB)
    error_table(False, log.sectors)
    wait_for(lambda: log.status()["health"] == "ok", 15 * SECONDS)
    log.message("flush")
    assert log.read(0, MIB, device=SSD) == noise(MIB)


def test_slowly_refused_blocks_in_a_full_log(log):
    """While such blocks are searched for, the log fills. Writers are refused after error_timeout, they
    don't wait for the end of the search."""
    refusing_slowly(log).create(block_size=4096, error_timeout=1)
    log.write(0, noise(MIB))
    begin = time.monotonic()
    done = write_until_refused(16)
    assert time.monotonic() - begin < 6 * SECONDS, "the writer waited for the search"
    assert log.read(0, MIB) == noise(MIB)
    assert log.read(MIB, done * 65536) == b"".join(noise(65536, i) for i in range(done))


def refused_then_unflushed(log):
    """The origin refuses a block, which is set aside. After that it takes all blocks, and fails all flushes."""
    run("modprobe dm-flakey")
    refusing(log).create(block_size=4096)
    log.write(0, noise(MIB))
    assert "error" in log.message("flush", check=False).lower()
    assert log.status()["refused"] == 1
    run("dmesg -C")
    half = log.sectors // 2
    table = f"0 {half} linear {SSD} 0\n{half} {half} flakey {SSD} {half} 0 3600 1 error_writes"
    run(f"dmsetup suspend --noflush --nolockfs bad; echo '{table}' | dmsetup load bad; dmsetup resume bad")


def test_origin_recovers_without_writeback(log):
    """A refused block's write succeeds, but the flush fails. Once both succeed, the origin is well, even if
    nothing else is to be written back."""
    refused_then_unflushed(log)
    wait_for(lambda: "cannot write back to origin" in run("dmesg"), 15)
    assert log.status()["health"] == "error"
    error_table(False, log.sectors)
    wait_for(lambda: log.status()["refused"] == 0, 15)
    wait_for(lambda: log.status()["health"] == "ok", 2)
    assert "is written back" in run("dmesg")


def test_refused_block_is_discarded_between_two_retries(log):
    """All of a generation but a refused block is written. The block is written, too, and then discarded before a flush
    succeeds. The generation is freed all the same, and the origin is well, although nothing else is written."""
    refused_then_unflushed(log)
    assert "error" in log.message("flush", check=False).lower()
    time.sleep(1)
    assert (log.status()["refused"], log.status()["used"]) == (1, 1)
    run(f"blkdiscard -o {BAD * 512} -l 4096 {DEVICE}")
    error_table(False, log.sectors)
    wait_for(lambda: log.status()["health"] == "ok", 15)
    log.message("flush")
    assert (log.status()["refused"], log.status()["used"]) == (0, 0)


def test_flaky_origin(log):
    """dm-flakey up and down beneath overlapping writes, until it has refused some of them several times."""
    run("modprobe dm-flakey")
    run(f"dmsetup create flaky --table '0 2048 flakey {SSD} 0 1 1 1 error_writes' && dmsetup mknodes")
    log.origin, log.sectors = "/dev/mapper/flaky", 2048
    log.create()

    def refused_again(_number):
        before = log.status()["origin_errors"]
        wait_for(lambda: log.status()["origin_errors"] > before, 60)

    beside_checker(f"run {DEVICE} {MIB} 21 {MANY} 4 0 512 131072 {STATE}", 4, refused_again)
    run(f"dmsetup suspend --noflush flaky; dmsetup load flaky --table '0 2048 linear {SSD} 0'; dmsetup resume flaky")
    for _ in range(20):
        if "error" not in log.message("flush", check=False).lower():
            break
        time.sleep(0.5)
    verificator(f"check {DEVICE} {STATE}")
    verificator(f"check {SSD} {STATE}")


def failing_flushes(log, fails_now):
    """The table of an origin that takes all writes. A part behind the log's device may fail all flushes."""
    linear = f"0 {log.sectors} linear {SSD} 0"
    return f"{linear}\n{log.sectors} 8 flakey {SSD} {log.sectors} 0 3600 1 error_writes" if fails_now else linear


def lose_writes(log):
    """Lets all flushes of the origin fail for a while. All writes since the last good one are lost then."""
    run("dmsetup suspend --noflush --nolockfs bad")
    run(f"dd if={SSD} of=/tmp/durable bs=1M count={log.sectors // 2048} iflag=direct status=none")
    run(f"echo '{failing_flushes(log, True)}' | dmsetup load bad; dmsetup resume bad")
    wait_for(lambda: log.status()["health"] == "error", 60)
    run("dmsetup suspend --noflush --nolockfs bad")
    run(f"dd if=/tmp/durable of={SSD} bs=1M oflag=direct status=none")
    run(f"echo '{failing_flushes(log, False)}' | dmsetup load bad; dmsetup resume bad")
    wait_for(lambda: log.status()["health"] == "ok", 60)


@pytest.mark.parametrize("marks", [{}, {"high_mark": 99, "low_mark": 98}], ids=["early", "late"])
def test_origin_fails_flushes_and_loses_writes(log, marks):
    """A failed flush frees nothing, and what was written before it is written again. So no acknowledged write
    is lost with the origin's own cache, under load, with flushes in flight beside writes."""
    run("modprobe dm-flakey")
    run(f"echo '{failing_flushes(log, False)}' | dmsetup create bad; dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    log.create(**marks)
    beside_checker(f"run {DEVICE} {32 * MIB} 11 {MANY} 4 1 4096 131072 {STATE}", 4, lambda number: lose_writes(log))
    verificator(f"check {DEVICE} {STATE}")
    log.message("flush")
    verificator(f"check {SSD} {STATE}")

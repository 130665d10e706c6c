# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: what is acknowledged is there, whatever the origin does, and in the order it was acknowledged."""

import fcntl
import mmap
import os
import random
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
    """Remove with a dirty log, create: everything is there; again and again."""
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
    """A 1 MiB origin hammered from 6 threads, readers beside them; then the same through replay."""
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
    """The thesis's own: nothing is written back until the log is nearly full; replay must know the order."""
    log.cache = small_device("other", 40, PMEM, 20)
    log.format().sectors = 2048
    log.create(high_mark=99, low_mark=98)
    verificator(f"run {DEVICE} {MIB} 77 {min(WRITES, 400)} 6 0 512 65536 {STATE}")
    assert log.status()["writeback_sectors"] == 0
    assert "sector" in verificator(f"check {SSD} {STATE}", check=False)
    log.again()
    verificator(f"check {DEVICE} {STATE}")


def test_verificator_notices(log):
    """The checker can fail."""
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
    """Three times the log's size, through a slow origin: writers wait, none fails, all is right."""
    # Slower than the writers, also on the debug kernel.
    delayed(log, 20 if DEBUG else 2).create()
    run(f"fio --name=x --filename={DEVICE} --rw=write --bs=64k --direct=1 --size=48m --ioengine=libaio --iodepth=8 "
        "--verify=crc32c --do_verify=1 --verify_fatal=1")
    status = log.status()
    assert status["space_waits"] > 0
    assert status["health"] == "ok"


def test_only_newest_versions_are_written(log):
    """An overwritten block goes to the origin once."""
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
    """Zeros in the log, and an origin that must be given pages of them: parts of pages and runs of many, too."""
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
    """More entries without data than the lines of a chunk, all by one writer: they harm no other chunk's."""
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


def test_discards_beside_writes(log):
    """Overlapping ones: what is read before power fails is read after it, whichever came last."""
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
    """Writers at work while it becomes a cleaner: nothing is lost, and then all goes to the origin."""
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
    """The origin `bad` refuses everything, or nothing."""
    target = "error" if fails_now else f"linear {SSD} 0"
    run(f"dmsetup suspend --noflush --nolockfs bad; dmsetup load bad --table '0 {sectors} {target}'; dmsetup resume bad")


def test_origin_fails_for_a_while(log):
    """The data stay in the log, it says so, and writes them when it can."""
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


def test_full_log_and_dead_origin(log):
    """Writes are refused after error_timeout, and taken again when the origin is back; nothing acknowledged is lost."""
    run(f"dmsetup create bad --table '0 {log.sectors} linear {SSD} 0' && dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    log.create(error_timeout=1)
    error_table(True, log.sectors)
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
    """By dm-log-writes: no sector goes back to an older version, and what `flush` promises has been flushed there."""
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
    """Writes again what dm-log-writes saw; each sector begins with the number of the write that it is from."""
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
    """Suspend holds all bios up until nobody is in the table: so it doesn't wait for a flush of the whole log."""
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
    refused(f"{SSD} {log.cache} 2 slots 0", "value that it can't have")
    refused(f"{SSD} {log.cache} 2 colour red", "option that there is not")
    refused(f"{SSD} {log.cache} 3 slots 2", "number of words")
    refused(f"{SSD} {log.cache} 4 low_mark 50 high_mark 50", "low_mark must be below")
    refused(f"{SSD} {log.cache} 2 block_size 256", "value that it can't have")
    log.create()
    said = fails(f"dmsetup create other --table '0 2048 forebay-wlog {SSD2} {log.cache}'")
    assert "in use by another" in said, said
    for message in ("flsh", "set slots 3", "set depth 0", "set high_mark 10", "latency maybe"):
        fails(f"dmsetup message {NAME} 0 {message}")
    log.message("set depth 3")
    assert log.read(0, 512) is not None


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
    """Removed the moment its last user has gone, and created again: what was acknowledged is there each time."""
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
    """io_uring's way: a request that would have to wait is told so, and comes again."""
    delayed(log, 2).create()
    run(f"fio --name=x --filename={DEVICE} --rw=randwrite --bs=16k --direct=1 --size=40m --ioengine=io_uring --iodepth=16 "
        "--verify=crc32c --do_verify=1 --verify_fatal=1")
    assert log.status()["health"] == "ok"

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: tables, messages and counters; devices that are suspended, loaded, removed and created
while others work with them."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from mapped import DEBUG, MANY, VERIFICATOR, beside_checker, flush_in_freeze, noise, small_device, verificator
from stack import PMEM, SSD, SSD2, block_name, fails, run
from writelog import DEVICE, MIB, NAME, STATE, delayed

pytestmark = pytest.mark.persistence


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
    """The origin grows with data in the log; it shrinks only if no data lies beyond the new end."""
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


def test_origin_in_the_memory_of_a_log(log):
    """An origin isn't taken if its memory is that of a log, another one or its own, nor a log in an origin's memory. An origin
    beside the log's memory is taken."""
    log.create()
    own = small_device("own", 16, PMEM, 16)
    over = small_device("over", 4, PMEM, 32)
    run(f"forebay writelog format --force {own}; forebay writelog format --force {over}")

    def refused(origin, cache, why, user):
        said = fails(f"dmsetup create third --table '0 2048 forebay-wlog {origin} {cache}'")
        assert why in said and f"in use already, as the {user} of" in said, said

    refused(small_device("alias", 16, PMEM, 8), own, "Origin is in use", f"log {block_name(log.cache)}")
    refused(small_device("within", 4, PMEM, 28), own, "Origin is in use", f"log {block_name(own)}")
    beside = small_device("beside", 16, PMEM, 32)
    run(f"dmsetup create other --table '0 2048 forebay-wlog {beside} {own}'")
    refused(SSD2, over, "Log device is in use", f"origin {block_name(beside)}")
    run(f"dmsetup load other --table '0 4096 forebay-wlog {beside} {own}'; dmsetup suspend other; dmsetup resume other")
    assert run("dmsetup table other").split()[1] == "4096"
    run("dmsetup remove other")


def test_options_are_in_the_table(log):
    """dmsetup table gives a line that creates the same."""
    log.create(slots=3, depth=7, on_damage="skip", origin_id="ab" * 64)
    table = run(f"dmsetup table {NAME}").strip()
    assert "8 slots 3 depth 7 on_damage skip origin_id " + "ab" * 64 in table
    log.remove()
    run(f"dmsetup create {NAME} --table '{table}'")
    assert run(f"dmsetup table {NAME}").strip() == table


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
        assert any(line.split()[0] == phase and len(line.split()) > 2 for line in said.splitlines()), said
    for event in ("dwl_append", "dwl_gen_open", "dwl_writeback", "dwl_gen_free"):
        assert event in trace


@pytest.mark.skipif(DEBUG, reason="a kernel without suspend")
def test_tasks_are_frozen(log):
    """Writers that wait for space in a full log can be frozen, because the worker isn't. A message flush
    continues afterwards."""
    delayed(log, 20).create(high_mark=99, low_mark=98)
    beside_checker(f"run {DEVICE} {32 * MIB} 11 {MANY} 8 1 65536 131072 {STATE}", 2, lambda number: flush_in_freeze(NAME))
    assert log.status()["space_waits"] > 0
    verificator(f"check {DEVICE} {STATE}")


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


@pytest.fixture(name="odd")
def odd_fixture(log):
    """The log over a disk whose limits are no multiples of 4096 bytes: for zeroes, for discards, and for
    where the parts of a discard begin."""
    if subprocess.run("modprobe sd_mod; modprobe -n scsi_debug", shell=True, check=False).returncode:
        pytest.skip("this kernel has no scsi_debug")
    before = set(Path("/sys/block").glob("sd*"))
    run("modprobe scsi_debug delay=0 dev_size_mb=64 lbpu=1 lbprz=1 lbpws=1 write_same_length=1001 unmap_max_blocks=1001 unmap_granularity=16")
    try:
        for _ in range(100):
            if set(Path("/sys/block").glob("sd*")) - before:
                break
            time.sleep(0.1)
        disk, = set(Path("/sys/block").glob("sd*")) - before
        log.sectors -= 8
        run(f"dmsetup create odd --table '0 {log.sectors} linear /dev/{disk.name} 3' && dmsetup mknodes")
        log.origin = "/dev/mapper/odd"
        limits = [int((Path("/sys/block") / block_name(log.origin) / "queue" / name).read_text(encoding="ascii"))
                  for name in ("write_zeroes_max_bytes", "discard_max_bytes")]
        assert all(limit % 4096 for limit in limits), limits
        yield log
    finally:
        run(f"dmsetup remove --retry {NAME}; dmsetup remove --retry odd; modprobe -r scsi_debug", check=False)


@pytest.mark.parametrize("option", ["-z", ""])
def test_limits_of_the_origin_are_no_multiples(odd, option):
    """Zeroes and discards that the block layer splits are split between blocks of the device."""
    odd.create(block_size=4096)
    odd.write(0, noise(8 * MIB))
    run(f"blkdiscard {option} -o 4096 -l {8 * MIB - 8192} {DEVICE}")
    assert odd.read(0, 4096) == noise(8 * MIB)[:4096]
    assert odd.read(8 * MIB - 4096, 4096) == noise(8 * MIB)[-4096:]
    if option:
        assert odd.read(4096, 8 * MIB - 8192) == bytes(8 * MIB - 8192)
    odd.message("flush")

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: devices that go away, come back, lead elsewhere, or are given to two targets; direct
I/O with memory that begins anywhere."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from mapped import MANY, beside_checker, direct_from_anywhere, noise, small_device, verificator
from stack import PMEM, SSD, SSD2, fails, run
from test_writelog_errors import wait_for
from writelog import DEVICE, MIB, NAME, STATE, Log, delayed, error_table

FULL = {"high_mark": 99, "low_mark": 98}        # nothing is written back before it must


def scsi_disks():
    """Their folders in sysfs."""
    return set(Path("/sys/block").glob("sd*"))


@pytest.fixture(name="whole")
def whole_fixture():
    """A log on all of the PMem, without a mapped device between."""
    clean_up()
    run("modprobe -r dm-forebay-writelog", check=False)
    yield Log(cache=PMEM).format()
    clean_up()


def test_log_taken_from_its_driver(whole):
    """PMem can't go away under a log: the unbind waits until the log is out of use. What was written is there
    afterwards."""
    whole.create(**FULL)
    whole.write(0, noise(MIB))
    device = Path("/sys/block/pmem0/device")
    driver, name = os.path.realpath(device / "driver"), os.path.basename(os.path.realpath(device))
    with subprocess.Popen(["sh", "-c", f"echo {name} >{driver}/unbind"]) as unbinding:
        time.sleep(3)
        assert unbinding.poll() is None
        whole.write(MIB, noise(MIB, 2))
        assert whole.read(0, 2 * MIB) == noise(MIB) + noise(MIB, 2)
        whole.remove()
        assert unbinding.wait(60) == 0
    run(f"echo {name} >{driver}/bind")
    wait_for(Path(PMEM).exists, 30)
    whole.create()
    assert whole.read(0, 2 * MIB) == noise(MIB) + noise(MIB, 2)


@pytest.fixture(name="scsi")
def scsi_fixture(log):
    """The log, over a SCSI disk; and the disk's folder in sysfs."""
    if subprocess.run("modprobe sd_mod; modprobe -n scsi_debug", shell=True, check=False).returncode:
        pytest.skip("this kernel has no scsi_debug")
    before = scsi_disks()
    run("modprobe scsi_debug delay=0 dev_size_mb=64")
    try:
        wait_for(lambda: scsi_disks() - before, 20)
        disk, = scsi_disks() - before
        log.origin = f"/dev/{disk.name}"
        yield log, disk
    finally:
        run(f"dmsetup remove --retry {NAME}; modprobe -r scsi_debug", check=False)


def test_origin_unplugged(scsi):
    """The origin goes away for good, and comes back as another device. What was acknowledged is read all the
    time, and written to it in the end."""
    log, disk = scsi
    log.create(**FULL)
    log.write(0, noise(4 * MIB))
    host = os.path.realpath(disk / "device").split("/host")[1].split("/")[0]
    (disk / "device/delete").write_text("1", encoding="ascii")
    log.write(0, noise(MIB, 2))
    assert log.read(0, 4 * MIB) == noise(MIB, 2) + noise(4 * MIB)[MIB:]
    begun = time.monotonic()
    fails(f"forebay writelog flush {NAME}")
    assert time.monotonic() - begun < 30 and log.status()["health"] == "error"
    run(f"forebay writelog remove --no-flush {NAME}")
    Path(f"/sys/class/scsi_host/host{host}/scan").write_text("- - -", encoding="ascii")
    run("udevadm settle", check=False)
    wait_for(scsi_disks, 20)
    log.origin = f"/dev/{scsi_disks().pop().name}"
    log.create()
    log.message("flush")
    assert log.read(0, 4 * MIB, log.origin) == noise(MIB, 2) + noise(4 * MIB)[MIB:]


def waits(log, writer):
    """Waits until a writer has filled the log and waits for space."""
    written = -1
    while log.status()["write_sectors"] != written:
        written = log.status()["write_sectors"]
        time.sleep(1)
    assert writer.poll() is None


def test_another_origin_while_writers_wait(log):
    """The log is full, and its origin is gone. A suspend without flush doesn't wait for the writers, which
    wait for the origin. So a table with another path to the origin is loaded, and the writers go on."""
    run(f"dmsetup create bad --table '0 {log.sectors} linear {SSD} 0' && dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    log.create(error_timeout=3600)
    error_table(True, log.sectors)
    Path("/tmp/much").write_bytes(noise(48 * MIB))
    dd = f"dd if=/tmp/much of={DEVICE} bs=192k oflag=direct status=none"
    with subprocess.Popen(dd, shell=True) as writer:
        try:
            waits(log, writer)
            log.origin = SSD
            run(f"dmsetup load {NAME} --table '{log.table()}'")
            with subprocess.Popen(["dmsetup", "suspend", "--noflush", "--nolockfs", NAME]) as suspending:
                try:
                    assert suspending.wait(20) == 0
                finally:        # what still waits gets an error, so that all can end
                    run(f"timeout 5 dmsetup message {NAME} 0 set error_timeout 0", check=False)
            run(f"dmsetup resume {NAME}")
            assert writer.wait(120) == 0
        finally:
            error_table(False, log.sectors)
    assert log.read(0, 48 * MIB) == noise(48 * MIB)
    log.message("flush")
    assert log.read(0, 48 * MIB, SSD) == noise(48 * MIB)


def test_suspended_without_flush_under_load(log):
    """Writers that wait for space are sent back again and again, and none of their writes is lost."""
    log.sectors = 16 * 2048
    delayed(log, 5).create(depth=1, **FULL)

    def suspend(number):
        time.sleep(0.5 + number % 3)
        run(f"dmsetup suspend --noflush --nolockfs {NAME}; dmsetup resume {NAME}")

    beside_checker(f"run {DEVICE} {16 * MIB} 8 {MANY} 4 0 512 131072 {STATE}", 12, suspend)
    assert log.status()["space_waits"] + log.status()["full_waits"] > 0
    verificator(f"check {DEVICE} {STATE}")


@pytest.mark.parametrize("how", ["remove --force", "wipe_table", "wipe_table --noflush"])
def test_table_taken_away(log, how):
    """The table is replaced under a writer. Writes fail from then on; what was acknowledged is in the log."""
    log.create(**FULL)
    log.write(0, noise(MIB))
    with subprocess.Popen(f"dd if=/dev/zero of={DEVICE} bs=64k seek=64 oflag=direct conv=notrunc 2>/dev/null",
                          shell=True) as writer:
        time.sleep(1)
        run(f"dmsetup {how} {NAME}", check=False)       # remove --force leaves a device in use
        assert writer.wait(60)
    run(f"dmsetup remove --retry {NAME}", check=False)
    log.create()
    assert log.read(0, MIB) == noise(MIB)
    log.message("flush")
    assert log.read(0, MIB, SSD) == noise(MIB)


def test_one_origin_under_two_logs(log):
    """A second log is refused, whatever it is. A reload of the first isn't."""
    log.create()
    own = small_device("own", 16, PMEM, 16)
    run(f"forebay writelog format --force {own}")
    said = fails(f"dmsetup create other --table '0 {log.sectors} forebay-wlog {SSD} {own}'")
    assert "Origin has a write log already" in said, said
    log.reload(depth=3)
    log.remove()
    run(f"dmsetup create other --table '0 {log.sectors} forebay-wlog {SSD} {own}'; dmsetup remove other")


def test_read_only_devices(log):
    """The block layer lets writes through to a device that was set read-only. So neither may be."""
    for device in (SSD2, log.cache):
        origin = device if device == SSD2 else SSD
        run(f"modprobe dm-forebay-writelog; blockdev --setro {device}")
        try:
            said = fails(f"dmsetup create {NAME} --table '0 2048 forebay-wlog {origin} {log.cache}'")
        finally:
            run(f"blockdev --setrw {device}; dmsetup remove {NAME}", check=False)
        assert "is read-only" in said, said


def test_log_leads_elsewhere_at_the_resume(log):
    """The log's device is a mapped one. When the table is resumed it leads to other memory than when it was
    loaded. That memory has another user."""
    run("modprobe dm-forebay-writelog")
    table = f"0 {16 * 2048} linear {PMEM} {16 * 2048}"
    moved = small_device("moved", 16, PMEM, 16)
    run(f"forebay writelog format --force {moved}")
    run(f"dmsetup create other --table '0 2048 forebay-wlog {SSD2} {moved}'")
    run(f"dmsetup create {NAME} --notable; dmsetup load {NAME} --table '{log.table()}'")
    run(f"dmsetup suspend small; dmsetup load small --table '{table}'; dmsetup resume small")
    said = fails(f"dmsetup resume {NAME}")
    assert "leads to other memory" in said, said
    run(f"dmsetup remove other; dmsetup remove {NAME}")


@pytest.mark.parametrize("block_size", [512, 4096])
def test_memory_that_begins_anywhere(log, block_size):
    """Direct I/O with buffers that begin wherever the device takes them. Some blocks are in the log, others
    on the origin only."""
    log.create(block_size=block_size, **FULL)

    def flush_once(number):
        if number == 75:
            log.message("flush")

    direct_from_anywhere(DEVICE, block_size, 150, 3, flush_once)

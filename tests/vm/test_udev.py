# SPDX-License-Identifier: GPL-2.0-only
"""packaging/udev: with udev running, caches and write logs have names that last."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from stack import LOWER, MOUNT, PMEM, run

ROOT = Path(__file__).resolve().parents[2]
UDEVD = "/lib/systemd/systemd-udevd"
BY_UUID = Path("/dev/disk/by-uuid")
UUID = "0f0e0b0a-1111-4222-8333-444455556666"
# One action of udev on one device may take so long. All waiting here ends as soon as its condition is met.
DEADLINE = 120

pytestmark = pytest.mark.skipif(not os.access(UDEVD, os.X_OK), reason="no udev")


@pytest.fixture(name="udev", scope="module")
def udev_fixture():
    """udev with its own rules and forebay's."""
    rules = (ROOT / "packaging/udev/64-forebay.rules").read_text(encoding="ascii")
    program = ROOT / "build/tools/forebay"
    assert rules.count("@PREFIX@/sbin/forebay") == 1
    Path("/run/udev/rules.d").mkdir(parents=True)
    Path("/run/udev/rules.d/64-forebay.rules").write_text(rules.replace("@PREFIX@/sbin/forebay", str(program)), encoding="ascii")
    run(f"{UDEVD} --daemon && udevadm trigger --action=add --subsystem-match=block && udevadm settle")
    yield
    run("udevadm control --exit")


def wait_until(condition):
    """udev hears of a device that was closed some time after that."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, run(f"udevadm info {PMEM}; ls -l {BY_UUID}", check=False)
        run("udevadm settle")
        time.sleep(0.05)


def seen_as(device=PMEM):
    """What `lsblk -f` shows."""
    found, = json.loads(run(f"lsblk --nodeps --json -o FSTYPE,UUID {device}"))["blockdevices"]
    return found["fstype"], found["uuid"]


def test_a_cache(udev):
    del udev
    run(f"forebay format --force --uuid {UUID} {PMEM}")
    wait_until(lambda: (BY_UUID / UUID).exists() and seen_as() == ("forebay", UUID))     # udev makes the link first
    assert os.path.realpath(BY_UUID / UUID) == PMEM
    assert run(f"blkid -t UUID={UUID} -o device; udevadm info -q property --property=ID_FS_USAGE --value {PMEM}").split()[-1] == "other"


def test_mounted_by_its_name(udev, stack):
    del udev
    uuid = json.loads(run(f"forebay probe --json {PMEM}"))["uuid"]
    wait_until((BY_UUID / uuid).exists)
    for cache in f"UUID={uuid}", BY_UUID / uuid:
        stack.umount()
        run(f"mount -t forebay -o cache={cache} {LOWER} {MOUNT}")
    assert seen_as() == ("forebay", uuid)
    # What protects it while it is mounted: nothing else opens it for itself.
    done = subprocess.run(f"mkfs.ext4 -q {PMEM}", shell=True, text=True, capture_output=True, check=False)
    assert done.returncode and "in use" in done.stdout + done.stderr
    assert seen_as() == ("forebay", uuid)


def test_a_write_log_and_then_a_file_system(udev):
    del udev
    run(f"forebay writelog format --force --uuid {UUID} {PMEM}")
    wait_until(lambda: seen_as() == ("forebay-writelog", UUID))
    assert os.path.realpath(BY_UUID / UUID) == PMEM
    run(f"mkfs.ext4 -Fq {PMEM}")
    wait_until(lambda: seen_as()[0] == "ext4")
    wait_until(lambda: not (BY_UUID / UUID).exists())
    run(f"forebay format --force {PMEM}")
    wait_until(lambda: seen_as()[0] == "forebay")


def test_a_mapped_device(udev):
    """A part of a persistent-memory device, made with device-mapper as an administrator's udev sees it."""
    del udev
    mapper = "env -u DM_DISABLE_UDEV dmsetup"
    run(f"{mapper} create piece --table '0 32768 linear {PMEM} 32768'")
    try:
        run(f"forebay format --force --uuid {UUID} /dev/mapper/piece && udevadm trigger --settle /dev/mapper/piece")
        wait_until((BY_UUID / UUID).exists)
        assert os.path.realpath(BY_UUID / UUID) == os.path.realpath("/dev/mapper/piece")
        assert seen_as("/dev/mapper/piece") == ("forebay", UUID)
    finally:
        run(f"{mapper} remove --retry piece")
    wait_until(lambda: not (BY_UUID / UUID).exists())


def test_an_ordinary_disk_is_not_asked(udev):
    """A copy of a cache on an ordinary disk is no cache: it could not be mounted."""
    del udev
    run(f"forebay format --force --uuid {UUID} {PMEM} && dd if={PMEM} of=/dev/nvme0n1 bs=1M count=4 conv=fsync 2>/dev/null")
    run("udevadm trigger --settle /dev/nvme0n1 /dev/pmem0")
    assert seen_as("/dev/nvme0n1")[0] is None and os.path.realpath(BY_UUID / UUID) == PMEM

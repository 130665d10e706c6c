# SPDX-License-Identifier: GPL-2.0-only
"""forebay doctor on a real kernel: nothing is wrong, then mistakes planted with real devices and mounts. And forebay metrics
and drain there. Runs in the test machine."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from conftest import DONE, MIB
from machine import needs, sh

PMEM, NVME, SSD = Path("/dev/pmem0"), Path("/dev/nvme0n1"), Path("/dev/mapper/ssd")
LOWER, UPPER, FSTAB = Path("/tmp/doctor-lower"), Path("/tmp/doctor-upper"), Path("/etc/fstab")
SECTORS = 64 * MIB // 512
ERRORS = 2

pytestmark = needs(PMEM)


@pytest.fixture
def ssd():
    """An ext4 file system on a mapped device over the SSD."""
    for folder in (LOWER, UPPER):
        folder.mkdir(exist_ok=True)
    sh("modprobe", "forebay")
    sh("dmsetup", "create", "ssd", "--uuid", "TEST-ssd", "--table", f"0 {SECTORS} linear {NVME} 0")
    sh("mkfs.ext4", "-q", "-F", SSD)
    yield SSD
    sh("dmsetup", "remove", "ssd")


@pytest.fixture
def empty(forebay):
    assert forebay("format", "--force", PMEM).status == DONE
    yield
    sh("wipefs", "-q", "-a", "-f", PMEM)
    sh("dd", "if=/dev/zero", f"of={PMEM}", "bs=4096", "count=4", "oflag=direct", "status=none")


@pytest.fixture
def fstab():
    """The file as it was, afterwards."""
    before = FSTAB.read_bytes() if FSTAB.exists() else None
    FSTAB.write_text("")
    yield FSTAB
    FSTAB.write_bytes(before) if before is not None else FSTAB.unlink()


def mount(options="rw"):
    sh("mount", "-o", options, SSD, LOWER)
    sh("mount", "-t", "forebay", "-o", f"cache={PMEM}", LOWER, UPPER)


def unmount():
    sh("umount", UPPER)
    sh("umount", LOWER)


def found(forebay):
    """The findings: check -> severity and object. A slow machine is told that a check goes on."""
    result = forebay("doctor", "--json")
    assert not re.sub(r"^\S+: being read, \d+ s so far\n", "", result.err, flags=re.M) and result.json["unseen"] == []
    return {finding["check"]: (finding["severity"], finding["object"]) for finding in result.json["findings"]}


def test_nothing_is_wrong(forebay, ssd, empty, fstab):
    mount()
    try:
        assert found(forebay) == {}
        assert forebay("doctor").status == DONE
    finally:
        unmount()


def test_lower_options(forebay, ssd, empty, fstab):
    mount("nobarrier,data=journal,discard")
    try:
        shown = found(forebay)
        assert shown == {"barriers": ("error", str(UPPER)), "lower-options": ("warning", str(UPPER))}
    finally:
        unmount()


def test_casefold_and_fstab(forebay, ssd, empty, fstab):
    """The mount fails, and the findings say why."""
    sh("mkfs.ext4", "-q", "-F", "-O", "casefold", SSD)
    sh("mount", SSD, LOWER)
    fstab.write_text(f"{LOWER} {UPPER} forebay cache={PMEM} 0 0\n{SSD} {LOWER} ext4 defaults 0 0\n")
    try:
        assert found(forebay) == {"casefold": ("error", str(UPPER)), "fstab-cache": ("warning", str(UPPER)),
                                  "fstab-order": ("warning", str(UPPER))}
    finally:
        sh("umount", LOWER)


def test_a_cache_with_data_is_not_mounted(forebay, empty, make_store, fstab):
    sh(make_store, PMEM, "bind", "file", 0, 0, "live", "page", 0, 0, 7, "out-of-sync")
    assert found(forebay) == {"unmounted": ("error", str(PMEM))}


def test_an_origin_without_its_log(forebay, ssd, empty, fstab):
    """The log is removed with writes in it: the file system that it is under is visible with its UUID."""
    sh("modprobe", "dm-forebay-writelog")
    assert forebay("writelog", "format", "--force", PMEM).status == DONE
    assert forebay("writelog", "create", "fast", SSD, PMEM).status == DONE
    assert found(forebay) == {}
    with open("/dev/mapper/fast", "r+b", buffering=0) as device:
        device.seek(32 * MIB)
        device.write(os.urandom(MIB))
        os.fsync(device.fileno())
    assert forebay("writelog", "remove", "--no-flush", "fast").status == DONE
    uuid = subprocess.run(["blkid", "-p", "-o", "value", "-s", "UUID", SSD], check=True, capture_output=True, text=True).stdout
    fstab.write_text(f"UUID={uuid.strip()} /srv ext4 defaults 0 2\n")
    assert found(forebay) == {"origin-visible": ("error", str(SSD)), "origin-fstab": ("error", "/srv")}
    assert forebay("doctor").status == ERRORS


def test_a_file_system_on_persistent_memory(forebay, empty, fstab):
    """That is no mistake, and is told."""
    sh("mkfs.ext4", "-q", "-F", "-b", "4096", PMEM)
    assert found(forebay) == {"memory-use": ("note", str(PMEM))}
    assert forebay("doctor").status == DONE


def test_an_emulated_cache(forebay, ssd, fstab):
    sh("modprobe", "forebay-emu")
    device = sh(Path(__file__).parents[3] / "build/tools/forebay", "emu", "create", "--size", "32M").split()[0].rstrip(":")
    try:
        assert forebay("format", "--force", device).status == DONE
        assert found(forebay) == {"volatile": ("warning", device)}
    finally:
        assert forebay("emu", "remove", device).status == DONE


def test_metrics_are_those_of_status(forebay, ssd, empty):
    """Of a real mount: an absorbed sync counts in both."""
    def shown():
        return {sample.name: sample.value for family in text_string_to_metric_families(forebay("metrics").out)
                for sample in family.samples}
    mount()
    try:
        file = os.open(UPPER / "new", os.O_RDWR | os.O_CREAT)
        before = shown()["forebay_cache_syncs_absorbed_total"]
        for page in range(8):
            os.pwrite(file, b"x" * 4096, page * 4096)
            os.fsync(file)
        os.close(file)
        status, metrics = forebay("status", "--json", PMEM).json[0], shown()
        assert metrics["forebay_cache_syncs_absorbed_total"] == status["syncs_absorbed"] > before
        assert metrics["forebay_cache_size_bytes"] == status["pages_total"] * 4096
        assert metrics["forebay_cache_absorbed_bytes_total"] == status["pages_absorbed"] * 4096 > 0
    finally:
        unmount()


def test_drain_in_a_container(command, forebay, ssd, empty):
    """Neither /proc nor /sys is there: the kernel drains all the same, and no number is told."""
    mount()
    try:
        with open(UPPER / "new", "wb") as file:
            for _ in range(8):
                file.write(b"x" * 4096)
                file.flush()
                os.fsync(file.fileno())
        before = forebay("status", "--json", PMEM).json[0]["pages_out_of_sync"]
        script = 'mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec "$@"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", command, "drain", UPPER], text=True, capture_output=True,
                              check=False)
        assert (done.returncode, done.stdout, done.stderr) == (DONE, f"{UPPER}: everything is on the lower file system\n", "")
        assert before > 0 and forebay("status", "--json", PMEM).json[0]["pages_out_of_sync"] == 0
    finally:
        unmount()

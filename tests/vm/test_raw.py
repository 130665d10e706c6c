# SPDX-License-Identifier: GPL-2.0-only
"""Persistent memory of the wrong kind; in a boot of its own, with the namespace left raw."""

import os
import time
from pathlib import Path

import pytest
from stack import LOWER, MKFS, MOUNT, PMEM, SSD, fails, run


@pytest.fixture(name="lower", scope="module", autouse=True)
def lower_fixture():
    """A lower file system."""
    for folder in (LOWER, MOUNT):
        os.makedirs(folder, exist_ok=True)
    run(MKFS["ext4"].format(device=SSD, mib=128))
    run(f"mount {SSD} {LOWER}; modprobe forebay")
    yield
    run(f"umount {LOWER}")


def test_raw_namespace():
    assert "ndctl create-namespace" in fails(f"mount -t forebay -o cache={PMEM} {LOWER} {MOUNT}")
    assert "ndctl create-namespace" in fails(f"forebay format {PMEM}")


def test_virtio_pmem():
    """Only a call to the host makes stores to virtio-pmem durable. It can't be a cache, and the errors
    say so."""
    run("modprobe virtio_pmem")
    deadline = time.monotonic() + 10
    device = None
    while not device and time.monotonic() < deadline:
        device = next((f"/dev/{d.name}" for d in Path("/sys/block").iterdir() if d.name.startswith("pmem") and d.name != "pmem0"), None)
        time.sleep(0.1)
    assert device, "no virtio-pmem here: tests/run gives --virtio-pmem"
    with open(device, "rb") as file:
        before = file.read(1 << 20)
    assert "virtio-pmem" in fails(f"mount -t forebay -o cache={device} {LOWER} {MOUNT}")
    assert "virtio-pmem" in fails(f"forebay format {device}")
    assert "virtio-pmem" in fails(f"forebay format --force {device}")
    with open(device, "rb") as file:
        assert file.read(1 << 20) == before

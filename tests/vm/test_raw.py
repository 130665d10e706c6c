# SPDX-License-Identifier: GPL-2.0-only
"""Persistent memory of the wrong kind; in a boot of its own, with the namespace left raw."""

import os
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
    """Made durable by a call to the host only: of no use."""
    run("modprobe virtio_pmem")
    device = next((f"/dev/{d.name}" for d in Path("/sys/block").iterdir() if d.name.startswith("pmem") and d.name != "pmem0"), None)
    if not device:
        pytest.skip("this QEMU has no virtio-pmem")
    out = fails(f"mount -t forebay -o cache={device} {LOWER} {MOUNT}")
    assert "virtio-pmem" in out or "forebay format" in out

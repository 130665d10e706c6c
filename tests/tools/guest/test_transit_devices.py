# SPDX-License-Identifier: GPL-2.0-only
"""forebay transit with real devices. Runs in the test machine, as test_devices.py does."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import DONE, FAILED
from machine import needs

DEVICE = Path("/dev/nvme0n1")
QUICK = Path("/dev/mapper/quick")

pytestmark = needs(DEVICE)


@pytest.fixture
def transit(forebay):
    """The transit verbs; what they made goes."""
    subprocess.run(["modprobe", "dm-forebay-transit"], check=True)
    yield lambda *arguments: forebay("transit", *arguments)
    if QUICK.exists():
        subprocess.run(["dmsetup", "remove", "quick"], check=True)


def test_numbers_in_the_table(transit, tmp_path):
    """So a path may have blanks, and may be another device's by the time the kernel reads the table."""
    (tmp_path / "a b").symlink_to(DEVICE)
    result = transit("create", "quick", tmp_path / "a b")
    assert result.status == DONE, result.err
    assert transit("status", "--json").json[0]["device"] == str(DEVICE)


def test_from_create_to_remove(transit):
    assert "No transit cache is in use." in transit("status").out
    made = transit("create", "--option", "cache_size=1M", "--option", "policy=lru", "quick", DEVICE)
    assert made.status == DONE and made.out == f"/dev/mapper/quick: {DEVICE} below a transit cache\n"
    block = os.urandom(65536)
    with open(QUICK, "r+b", buffering=0) as device:
        device.write(block)
        os.fsync(device.fileno())
    seen, = transit("status", "--json", "quick").json
    assert (seen["name"], seen["device"], seen["policy"], seen["health"]) == ("quick", str(DEVICE), "lru", "ok")
    assert seen["options"] == {"cache_size": 1 << 20, "policy": "lru"}
    assert seen["values"]["flushes"] > 0 and seen["slots_total"] == (1 << 20) // int(
        Path("/sys/block/nvme0n1/queue/physical_block_size").read_text(encoding="ascii"))
    assert [cache["name"] for cache in transit("status", "--json").json] == ["quick"]
    said = transit("status", "/dev/mapper/quick").out
    assert said.startswith("quick\n") and "policy lru" in said and "evicted" in said
    assert transit("remove", "quick").out == "quick: removed\n"
    assert not QUICK.exists()
    with open(DEVICE, "rb") as device:
        assert device.read(65536) == block


def test_what_is_refused(transit):
    result = transit("create", "quick", "/dev/null")
    assert result.status == FAILED and "cannot be below a cache" in result.err
    result = transit("create", "--option", "policy=fifo", "quick", DEVICE)
    assert result.status == FAILED and "quick: cannot create it" in result.err
    assert transit("create", "quick", DEVICE).status == DONE
    result = transit("create", "other", DEVICE)
    assert result.status == FAILED and f"{DEVICE} is in use" in result.err
    with open(QUICK, "rb"):
        result = transit("remove", "quick")
        assert result.status == FAILED and "quick is in use" in result.err
    with subprocess.Popen(["sh", "-c", f"exec <{QUICK}; echo; sleep 1"], stdout=subprocess.PIPE) as visitor:
        visitor.stdout.readline()
        assert transit("remove", "quick").status == DONE
    result = transit("remove", "nothing")
    assert result.status == FAILED and "no device with a transit cache" in result.err
    assert transit("status", "nothing").status == FAILED

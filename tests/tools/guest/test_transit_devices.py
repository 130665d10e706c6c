# SPDX-License-Identifier: GPL-2.0-only
"""forebay transit with real devices. Runs in the test machine, as test_devices.py does."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import DONE, FAILED, LEFT, MIB
from machine import needs, sh

DEVICE = Path("/dev/nvme0n1")
BELOW = Path("/dev/mapper/below")
SECTORS = 64 * MIB // 512
QUICK = Path("/dev/mapper/quick")

pytestmark = needs(DEVICE)


@pytest.fixture
def transit(forebay):
    """The transit verbs; the devices that they made are removed afterwards."""
    subprocess.run(["modprobe", "dm-forebay-transit"], check=True)
    yield lambda *arguments: forebay("transit", *arguments)
    if QUICK.exists():
        subprocess.run(["dmsetup", "remove", "quick"], check=True)


def test_numbers_in_the_table(transit, tmp_path):
    """Tables have device numbers: a path may have blanks, or lead to another device when the kernel reads the table."""
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
    result = transit("create", "quick", __file__)
    assert result.status == FAILED and "it is a file, not a block device" in result.err
    result = transit("create", "--option", "policy=fifo", "quick", DEVICE)
    assert result.status == FAILED and "quick: cannot create it" in result.err
    assert transit("create", "quick", DEVICE).status == DONE
    result = transit("create", "quick", DEVICE)
    assert result.status == FAILED and "quick: a mapped device of that name already exists" in result.err
    result = transit("create", "other", DEVICE)
    assert result.status == FAILED and f"{DEVICE} is used by /dev/mapper/quick (dm-" in result.err
    assert "`forebay transit remove quick` removes it" in result.err
    with open(QUICK, "rb"):
        result = transit("remove", "quick")
        assert result.status == FAILED and "quick is in use" in result.err
    with subprocess.Popen(["sh", "-c", f"exec <{QUICK}; echo; sleep 1"], stdout=subprocess.PIPE) as visitor:
        visitor.stdout.readline()
        assert transit("remove", "quick").status == DONE
    result = transit("remove", "nothing")
    assert result.status == FAILED and "nothing is not a device with a transit cache" in result.err
    assert transit("status", "nothing").status == FAILED


def test_status_by_the_device_below(transit):
    assert transit("create", "quick", DEVICE).status == DONE
    assert transit("status", "--json", DEVICE).json[0]["name"] == "quick"


def test_flush_set_and_latency(transit):
    assert transit("create", "--option", "eager_eviction=off", "quick", DEVICE).status == DONE
    assert transit("latency", "quick", "on").status == DONE
    block = os.urandom(65536)
    with open(QUICK, "r+b", buffering=0) as device:
        device.write(block)
    result = transit("flush", "quick")
    assert (result.status, result.out) == (DONE, "quick: everything is on the device\n"), result.err
    assert subprocess.run(["dd", f"if={DEVICE}", "bs=64K", "count=1", "iflag=direct", "status=none"], stdout=subprocess.PIPE,
                          check=True).stdout == block
    assert transit("set", "quick", "workers=2", "eager_eviction=on").status == DONE
    assert transit("status", "--json").json[0]["options"] == {"workers": 2, "eager_eviction": "on"}
    result = transit("set", "quick", "workers=0")
    assert result.status == FAILED and "quick: workers=0: invalid value" in result.err
    steps = {step["step"]: step for step in transit("latency", "--json", "quick").json}
    assert steps["write"]["count"] and steps["write"]["count"] == sum(count for _, count in steps["write"]["bins"])


def test_suspended(transit):
    assert transit("create", "quick", DEVICE).status == DONE
    sh("dmsetup", "suspend", "quick")
    for verb in ("flush", "remove"):
        result = transit(verb, "quick")
        assert result.status == FAILED and "Is it suspended? `dmsetup resume quick` ends that." in result.err
    sh("dmsetup", "resume", "quick")
    assert transit("remove", "--quiet", "quick").status == DONE and not QUICK.exists()


@pytest.fixture
def below():
    """below(target): a device to put a cache over, 5 sectors longer than whole blocks."""
    def load(target):
        sh("dmsetup", "suspend", "--nolockfs", "below")
        sh("dmsetup", "load", "below", "--table", f"0 {SECTORS + 5} {target}")
        sh("dmsetup", "resume", "below")
    sh("dmsetup", "create", "below", "--table", f"0 {SECTORS + 5} linear {DEVICE} 0")
    sh("dmsetup", "mknodes")
    yield load
    sh("dmsetup", "remove", "--retry", "below")


def test_a_device_that_refuses(below, transit):
    made = transit("create", "--option", "block_size=4096", "quick", BELOW)
    assert made.status == DONE and "Its last 5 sectors are left out" in made.out
    below("error")
    sh("dd", "if=/dev/zero", f"of={QUICK}", "bs=4096", "count=1", "oflag=direct")
    for verb in ("flush", "remove"):
        result = transit(verb, "quick")
        assert result.status == LEFT and "not everything could be written back: Input/output error" in result.err
        assert "At most 1 block left in the cache, and tried again" in result.err
        assert ("--no-flush" in result.err) == (verb == "remove")
    assert transit("remove", "--no-flush", "quick").status == DONE

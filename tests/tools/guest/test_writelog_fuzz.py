# SPDX-License-Identifier: GPL-2.0-only
"""Mutated logs given to the kernel's target: it takes them or it doesn't, but nothing breaks. Runs in the test machine:

    vm/run --pmem 128M -- /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/tools/guest/test_writelog_fuzz.py

FUZZ_CASES and FUZZ_SEED in the environment make it longer or other. What the kernel reports ends the machine's run
with status 99, so it is no business of this test.
"""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import DONE, MIB
from machine import needs

PMEM, NVME = Path("/dev/pmem0"), Path("/dev/nvme0n1")
ORIGIN_SECTORS = 2048           # a MiB
LOG = "/dev/mapper/mutated"
CASES, SEED = int(os.environ.get("FUZZ_CASES", "16")), int(os.environ.get("FUZZ_SEED", "1"))
PATIENCE = 300      # seconds

pytestmark = needs(PMEM)


def sh(*command, check=True):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}"
    return done.returncode


@pytest.fixture
def small_log():
    """Persistent memory of a MiB."""
    sh("dmsetup", "create", "mutated", "--table", f"0 {MIB // 512} linear {PMEM} 0")
    sh("dmsetup", "mknodes")
    yield LOG
    sh("dmsetup", "remove", "mutated")


def use(policy):
    """Maps the log with that policy, reads and writes everything, flushes, unmaps; returns whether the log was taken.
    A generation that can't be read any more stays in the log. Writes that find no room are refused after a second
    instead of a minute."""
    table = f"0 {ORIGIN_SECTORS} forebay-wlog {NVME} {LOG} 4 on_damage {policy} error_timeout 1"
    if sh("dmsetup", "create", "victim", "--table", table, check=False):
        # Refused when it was resumed: the device is there, without a table that works.
        sh("dmsetup", "remove", "--retry", "victim", check=False)
        return False
    sh("dmsetup", "mknodes")
    sh("dd", "if=/dev/mapper/victim", "of=/dev/null", "bs=64k", "iflag=direct", "conv=noerror", check=False)
    sh("dd", "if=/dev/zero", "of=/dev/mapper/victim", "bs=64k", "count=8", "oflag=direct", check=False)
    sh("dmsetup", "message", "victim", "0", "flush", check=False)
    sh("dd", "if=/dev/mapper/victim", "of=/dev/null", "bs=64k", "iflag=direct", "conv=noerror", check=False)
    sh("dmsetup", "remove", "--retry", "victim")
    return True


def lossy(forebay, image):
    """Whether the command finds damage that affects replay; None if the image is no log at all."""
    result = forebay("writelog", "check", "--json", image)
    findings = result.json["findings"] if result.out else None
    if findings is None or "uuid" not in result.json:
        return None
    return any(found["what"] != "superblock" and "before an older" not in found["problem"] for found in findings)


@pytest.mark.parametrize("options", [(), ("--data-checksums",)], ids=["plain", "checksums"])
def test_mutated_logs(forebay, log, fuzz_log, small_log, options):
    image = log("open 1", "write 8 8", "discard 0 64", "seal 1 2", "open 0", "write 800 3", "free 1", "open 2",
                "write 1 1", size=MIB, options=options)
    good, taken = image.read_bytes(), {"stop": 0, "skip": 0}
    for case in range(CASES):
        policy = ("stop", "skip")[case % 2]
        image.write_bytes(good)
        sh(fuzz_log, image, SEED * 1000000 + case)
        sh("dd", f"if={image}", f"of={small_log}", "bs=1M", "oflag=direct")
        expected, was_taken = lossy(forebay, image), use(policy)
        assert not was_taken or expected is not None, f"case {case}: the command sees no log"
        assert not (was_taken and expected and policy == "stop"), f"case {case}: taken in spite of its damage"
        taken[policy] += was_taken
    print(f"taken: {taken}")
    assert taken["stop"] and taken["skip"] and sum(taken.values()) < CASES
    result = forebay("writelog", "format", "--force", LOG)
    assert result.status == DONE, result.err

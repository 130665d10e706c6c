# SPDX-License-Identifier: GPL-2.0-only
"""Runs agree.c: two processes, a file of 1 GiB, and a DAX mapping of 8 MiB of it. FOREBAY_AGREE is the
number of seconds (60)."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from libc import info
from stack import MOUNT

SECONDS = int(os.environ.get("FOREBAY_AGREE", "60"))
AGREE = Path(__file__).resolve().parents[2] / "build/tests/agree"
MIB = 1 << 20


@pytest.mark.persistence
@pytest.mark.parametrize("mode", ["explicit", "auto"])
def test_agree(stack, mode):
    """Half of the time in each mode; with mode=explicit only the mapping's pages are in PMem."""
    stack.umount()
    stack.mount(f"mode={mode}")
    seed = int(os.environ.get("FOREBAY_SEED") or random.SystemRandom().randrange(1 << 30))
    print(f"seed {seed}")
    done = subprocess.run([AGREE, MOUNT / "f", "1024", "300", "8", str(1 << 40), str(SECONDS // 2), str(seed)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    print(done.stdout, done.stderr)
    assert done.returncode == 0 and int(done.stdout) > 100
    fd = os.open(MOUNT / "f", os.O_RDONLY)
    inside, outside = info(fd, 300 * MIB, 8 * MIB), [info(fd, 0, 300 * MIB), info(fd, 308 * MIB)]
    assert inside.clean + inside.out_of_sync > 0
    if mode == "explicit":
        assert all(part.clean + part.out_of_sync == 0 for part in outside)
    os.close(fd)

# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the command with real devices share. They run in the test machine only."""

import subprocess
from pathlib import Path

import pytest

from conftest import IN_MACHINE


def needs(device):
    """For pytestmark: skips a test outside the test machine, or without the device."""
    return pytest.mark.skipif(not IN_MACHINE or not Path(device).is_block_device(),
                              reason="needs the test machine: vm/run -- /usr/bin/python3 -m pytest tests/tools/guest")


def sh(*command):
    """Runs a command, which must succeed; returns its output."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout

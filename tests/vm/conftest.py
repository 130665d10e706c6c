# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the tests in the guest. These tests run as root in a machine of their own (tests/run)."""

import contextlib
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stack import LOWER, MOUNT, SSD, Stack, run  # noqa: E402  pylint: disable=wrong-import-position

PERSISTENCE = os.environ.get("FOREBAY_PERSISTENCE", "mem-ctrl")


def pytest_configure(config):
    """Markers."""
    config.addinivalue_line("markers", "slow: left out on the debug kernel, as too slow or for the reason given")
    config.addinivalue_line("markers", "persistence: run in both persistence domains")
    if Path(SSD).exists() and "vm=1" not in os.environ.get("FOREBAY_TESTS", "vm=1"):
        raise pytest.UsageError("these tests format devices: run them with tests/run")


def clean_up():
    """Removes whatever a test left behind."""
    os.chdir("/")
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):      # the folder's own is gone
            if os.readlink(link).startswith("/mnt/"):
                os.close(int(link.name))        # of a test that failed: the next ones shall not
    for line in reversed(Path("/proc/mounts").read_text(encoding="utf-8").splitlines()):
        folder = line.split()[1]
        if folder.startswith("/mnt/"):
            run(f"fsfreeze -u {folder} 2>/dev/null; umount {folder} || umount -l {folder}", check=False)
    run("dmsetup remove_all --force", check=False)


@pytest.fixture(name="stack")
def stack_fixture(request):
    """forebay over a fresh ext4; for others, @pytest.mark.parametrize("stack", [dict(fs=...)],
    indirect=True)."""
    clean_up()
    stack = Stack(**getattr(request, "param", {})).make()
    yield stack
    os.chdir("/")
    try:
        stack.destroy()
    finally:
        clean_up()


@pytest.fixture(name="shared", scope="module", params=["ext4"])
def shared_fixture(request):
    """One stack for all tests of a file that want it."""
    clean_up()
    stack = Stack(fs=request.param).make()
    yield stack
    os.chdir("/")
    try:
        stack.destroy()
    finally:
        clean_up()


@pytest.fixture(name="folder")
def folder_fixture(shared, request):
    """A folder of the test's own on the shared stack."""
    del shared
    folder = MOUNT / re.sub(r"\W+", "_", request.node.name)
    folder.mkdir()
    yield folder
    os.chdir("/")


@pytest.fixture(name="below")
def below_fixture(folder):
    """The same folder, seen on the lower file system."""
    return LOWER / folder.name


@pytest.fixture(autouse=True)
def bare_fixture():
    """Also a test without a stack begins and ends without one."""
    os.umask(0o022)
    yield

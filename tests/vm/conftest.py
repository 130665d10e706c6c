# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the tests in the guest. These tests run as root in a machine of their own (tests/run)."""

import contextlib
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mapped import small_device  # noqa: E402  pylint: disable=wrong-import-position
from stack import LOWER, MOUNT, PMEM, Stack, run, small_cache  # noqa: E402  pylint: disable=wrong-import-position
from transit import Transit, btt  # noqa: E402  pylint: disable=wrong-import-position
from writelog import Log  # noqa: E402  pylint: disable=wrong-import-position

PERSISTENCE = os.environ.get("FOREBAY_PERSISTENCE", "mem-ctrl")


def pytest_configure(config):
    """Markers. Outside of the test machine devices would be formatted, and mounts and mapped devices removed, that aren't ours."""
    if os.uname().nodename != "forebay-vm":
        raise pytest.UsageError("these tests format devices: run them with tests/run")
    config.addinivalue_line("markers", "slow: left out on the debug kernel, as too slow or for the reason given")
    config.addinivalue_line("markers", "persistence: run in both persistence domains")


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


@contextlib.contextmanager
def destroyed_afterwards(stack):
    """The rest of a fixture that has made a stack."""
    yield stack
    os.chdir("/")
    try:
        stack.destroy()
    finally:
        clean_up()


@pytest.fixture(name="stack")
def stack_fixture(request):
    """forebay over a fresh ext4; for others, @pytest.mark.parametrize("stack", [dict(fs=...)],
    indirect=True)."""
    clean_up()
    with destroyed_afterwards(Stack(**getattr(request, "param", {})).make()) as stack:
        yield stack


@pytest.fixture(name="shared", scope="module", params=["ext4"])
def shared_fixture(request):
    """One stack for all tests of a file that want it."""
    clean_up()
    with destroyed_afterwards(Stack(fs=request.param).make()) as stack:
        yield stack


@pytest.fixture(name="folder")
def folder_fixture(shared, request):
    """A folder of the test's own on the shared stack."""
    del shared
    name = re.sub(r"\W+", "_", request.node.name)
    attempt = getattr(request.node, "execution_count", 1)       # a test that is run again (clock.py) starts afresh
    folder = MOUNT / (name if attempt == 1 else f"{name}{attempt}")
    folder.mkdir()
    yield folder
    os.chdir("/")


@pytest.fixture(name="below")
def below_fixture(folder):
    """The same folder, seen on the lower file system."""
    return LOWER / folder.name


@pytest.fixture(name="cache")
def cache_fixture():
    """A cache over the NVMe device, not mapped yet."""
    clean_up()
    run("modprobe -r dm-forebay-transit", check=False)
    yield Transit()
    clean_up()


@pytest.fixture(name="over_btt")
def over_btt_fixture(cache):
    """Over a BTT with blocks of 4096 bytes."""
    cache.below = btt()
    return cache


@pytest.fixture(name="log")
def log_fixture():
    """A log of 16 MiB over 64 MiB of the SSD."""
    clean_up()
    run("modprobe -r dm-forebay-writelog", check=False)
    log = Log(cache=small_device("small", 16, PMEM)).format()
    yield log
    clean_up()


@pytest.fixture(name="small")
def small_fixture():
    """A cache of 8 MiB with limits of 2 MiB for all and 1 MiB for a user."""
    clean_up()
    stack = Stack(cache=small_cache(8)).make()
    run(f"mount -o remount,pin_limit=2M,pin_limit_user=1M {MOUNT}; chmod 777 {MOUNT}")
    with destroyed_afterwards(stack):
        yield stack


@pytest.fixture(autouse=True)
def bare_fixture():
    """Also a test without a stack begins and ends without one."""
    os.umask(0o022)
    yield

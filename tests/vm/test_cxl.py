# SPDX-License-Identifier: GPL-2.0-only
"""On the persistent memory of a CXL device, from end to end; small, since QEMU emulates each access."""

import os

import pytest
from conftest import clean_up
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping
from stack import MOUNT, PAGE, SSD, Stack, read_below, run
from writelog import DEVICE, Log


@pytest.fixture(autouse=True)
def clean_fixture():
    """Nothing left of another test."""
    assert "commit" in run("cxl list -R"), "this boot is of a machine with a CXL region"
    clean_up()
    yield
    clean_up()


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_file_system(fs):
    stack = Stack(fs=fs).make()
    written = os.urandom(40 * PAGE)
    with open(MOUNT / "f", "wb", buffering=0) as file:
        for page in range(40):
            os.pwrite(file.fileno(), written[page * PAGE:(page + 1) * PAGE], page * PAGE)
            os.fdatasync(file.fileno())
    assert stack.value("syncs_absorbed") >= 39 and stack.value("pages_out_of_sync") >= 30
    fd = os.open(MOUNT / "f", os.O_RDWR)
    with Mapping(fd, 40 * PAGE, flags=MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        assert mapping.read(0, len(written)) == written
        mapping.write(PAGE, b"stored")
        mapping.sync()
    os.close(fd)
    stack.umount()
    assert read_below("f") == written[:PAGE] + b"stored" + written[PAGE + 6:]
    assert "clean" in run("forebay check /dev/pmem0")
    stack.destroy()


def test_write_log():
    log = Log(mib=16).format().create()
    data = os.urandom(2 << 20)
    log.write(0, data)
    log.again()
    assert log.read(0, len(data)) == data
    run("forebay writelog flush wl")
    assert log.read(0, len(data), SSD) == data
    assert os.path.exists(DEVICE)
    log.remove()

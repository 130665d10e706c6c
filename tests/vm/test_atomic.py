# SPDX-License-Identifier: GPL-2.0-only
"""Untorn writes (RWF_ATOMIC) of storage that has them: a program is told that files on forebay have none."""

import ctypes
import errno
import os
import struct
import time
from pathlib import Path

import pytest
from conftest import clean_up
from libc import aligned, syscall
from stack import LOWER, MOUNT, Stack, run

STATX_WRITE_ATOMIC, ATTR_WRITE_ATOMIC = 0x10000, 0x400000
RWF_ATOMIC = 0x40


@pytest.fixture(name="untorn", params=["ext4", "xfs"])
def untorn_fixture(request):
    """forebay over a device that writes several blocks whole or not at all."""
    clean_up()
    if "atomic_wr" not in run("modinfo -F parm scsi_debug"):
        pytest.skip("this kernel's scsi_debug has no untorn writes")
    run("modprobe sd_mod; modprobe scsi_debug dev_size_mb=400 atomic_wr=1")
    for _ in range(100):
        found = list(Path("/sys/bus/pseudo/drivers/scsi_debug").glob("adapter*/host*/target*/*/block/*"))
        if found:
            break
        time.sleep(0.1)
    stack = Stack(fs=request.param, mib=380, device=f"/dev/{found[0].name}").make()
    yield stack
    os.chdir("/")
    stack.destroy()
    clean_up()
    run("modprobe -r scsi_debug")


def offered(path):
    """Of statx(2): whether it tells of untorn writes, whether the file has them, and the smallest and largest."""
    answer = ctypes.create_string_buffer(256)
    syscall(332, -100, ctypes.c_char_p(os.fsencode(path)), 0, STATX_WRITE_ATOMIC | 0x7FF, answer)
    mask, _, attributes = struct.unpack_from("IIQ", answer.raw)
    smallest, largest = struct.unpack_from("II", answer.raw, 168)
    return bool(mask & STATX_WRITE_ATOMIC), bool(attributes & ATTR_WRITE_ATOMIC), smallest, largest


def write_untorn(path, length):
    """The errno of such a write, or 0."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    try:
        os.pwritev(fd, [aligned(b"u" * length)], 0, RWF_ATOMIC)
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)
    return 0


def test_untorn_writes(untorn):
    """What statx() offers, a write can have."""
    del untorn
    (LOWER / "below").write_bytes(bytes(1 << 16))
    (MOUNT / "above").write_bytes(bytes(1 << 16))
    print("below:", offered(LOWER / "below"), write_untorn(LOWER / "below", 4096))
    told, has, smallest, largest = offered(MOUNT / "above")
    print("above:", told, has, smallest, largest, write_untorn(MOUNT / "above", 4096))
    assert write_untorn(MOUNT / "above", 4096) == errno.EOPNOTSUPP
    assert not told and not has and not smallest and not largest

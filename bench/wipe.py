# SPDX-License-Identifier: GPL-2.0-only
"""What is written to a device before a system is set up on it, and after an mkfs that has left holes in the image."""

import os
import struct

WIPED = 4 << 20         # bytes at either end of a device: where superblocks are


def xfs_log(device: str) -> tuple[int, int]:
    """Where the log is, in bytes, by the superblock. mkfs asked for zeros there; the image has holes now."""
    with open(device, "rb") as file:
        sb = file.read(512)
    block, start, group_blocks, log_blocks, shift = (
        struct.unpack_from(form, sb, at)[0] for form, at in ((">I", 4), (">Q", 48), (">I", 84), (">I", 96), ("B", 124)))
    group, within = start >> shift, start & (1 << shift) - 1
    return (group * group_blocks + within) * block, log_blocks * block


def write_again(device: str, start: int, size: int) -> None:
    fd = os.open(device, os.O_RDWR)
    try:
        for offset in range(start, start + size, 1 << 20):
            os.pwrite(fd, os.pread(fd, min(1 << 20, start + size - offset), offset), offset)
        os.fsync(fd)
    finally:
        os.close(fd)


def wipe(device: str) -> None:
    zeros = bytes(1 << 20)
    fd = os.open(device, os.O_WRONLY)
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        for start in (0, size - WIPED):
            for offset in range(start, start + WIPED, len(zeros)):
                os.pwrite(fd, zeros, offset)
        os.fsync(fd)
    finally:
        os.close(fd)

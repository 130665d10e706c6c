# SPDX-License-Identifier: GPL-2.0-only
"""What other tasks and the kernel do with mappings, besides faults of the task itself: debuggers."""

import json
import os
import struct

import pytest
from conftest import clean_up
from libc import MAP_PRIVATE, PROT_READ, Mapping
from stack import LOWER, MKFS, MOUNT, PAGE, SSD, close_files, create_emulated, run

BREAKPOINT = 0xCC


def in_pmem(path, pages):
    """A file with a number at the begin of each page, all pages in PMem."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(2):
        for page in range(pages):
            os.pwrite(fd, b"%06d" % page + b"x" * (PAGE - 6), page * PAGE)
        os.fsync(fd)
    return fd


@pytest.fixture(name="emulated")
def emulated_fixture():
    """forebay over ext4, with a cache of ordinary memory."""
    clean_up()
    run("modprobe forebay-emu; modprobe forebay")
    device = create_emulated("--size 16M")
    for folder in (LOWER, MOUNT):
        folder.mkdir(parents=True, exist_ok=True)
    run(MKFS["ext4"].format(device=SSD, mib=256))
    run(f"mount {SSD} {LOWER} && forebay format {device} && mount -t forebay -o cache={device},allow_volatile_cache {LOWER} {MOUNT}")
    yield
    close_files("/mnt/")
    clean_up()
    run(f"forebay emu remove {device}")


def breakpoint_in_child(path, locked):
    """A debugger writes a byte into another process's program text. That alone is changed, in a page of the process's own."""
    pages, at = 4, PAGE + 100
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    expected = bytearray(path.read_bytes())
    pid = os.fork()
    if not pid:
        try:
            text = Mapping(os.open(path, os.O_RDONLY), pages * PAGE, MAP_PRIVATE, PROT_READ)
            if locked:
                text.lock()
            assert text.read(0, pages * PAGE) == expected
            os.write(to_parent, struct.pack("Q", text.address))
            os.read(from_parent, 1)
            expected[at] = BREAKPOINT
            wrong = [page for page in range(pages) if text.read(page * PAGE, PAGE) != expected[page * PAGE:(page + 1) * PAGE]]
            os.write(to_parent, json.dumps(wrong).encode())
        finally:
            os._exit(0)
    os.close(to_parent)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(struct.unpack("Q", os.read(from_child, 8))[0] + at)
        memory.write(bytes([BREAKPOINT]))
    os.write(to_child, b"x")
    wrong = json.loads(os.read(from_child, 1000))
    os.waitpid(pid, 0)
    for fd in (from_child, from_parent, to_child):
        os.close(fd)
    assert not wrong, f"pages {wrong} have other bytes"
    assert path.read_bytes() == expected


@pytest.mark.parametrize("locked", [False, True], ids=["plain", "locked"])
def test_breakpoint(folder, locked):
    os.close(in_pmem(folder / "f", 4))
    breakpoint_in_child(folder / "f", locked)


def test_breakpoint_emulated(emulated):
    del emulated
    os.close(in_pmem(MOUNT / "f", 4))
    breakpoint_in_child(MOUNT / "f", False)
    with Mapping(os.open(MOUNT / "f", os.O_RDONLY), 4 * PAGE, MAP_PRIVATE, PROT_READ) as text:
        assert text.read(0, 6) == b"000000"
        run(f"forebay drop {MOUNT}/f")
        assert text.read(PAGE, 6) == b"000001"

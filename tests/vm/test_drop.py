# SPDX-License-Identifier: GPL-2.0-only
"""Drop by ioctl, posix_fadvise(POSIX_FADV_DONTNEED) and command; pages that stay are reported."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import time

from libc import IOC_PIN, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, drop, info, on_range, pages
from stack import MOUNT, PAGE, drop_caches, run

DAX = MAP_SHARED_VALIDATE | MAP_SYNC
END = ((1 << 63) - 1) // PAGE


def made(folder, count=32):
    """Makes a file with all its pages in PMem, every second one out-of-sync."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"o" * count * PAGE, 0)
    os.fsync(fd)
    mapping = Mapping(fd, count * PAGE, DAX)
    mapping.read(0, count * PAGE)
    for page in range(0, count, 2):
        mapping.write(page * PAGE, b"changed")
    mapping.close()
    assert info(fd)[4:6] == (count // 2, count // 2)
    return fd


def test_drop_writes_back_first(folder, below):
    fd = made(folder)
    assert drop(fd, 4 * PAGE, 8 * PAGE) == (8, 0, 0)
    assert pages(fd) == 24 and pages(fd, 4 * PAGE, 8 * PAGE) == 0
    drop_caches()
    data = (below / "f").read_bytes()
    assert data[4 * PAGE:4 * PAGE + 7] == b"changed" and data[5 * PAGE:5 * PAGE + 7] == b"o" * 7
    assert drop(fd) == (24, 0, 0)
    assert drop(fd) == (0, 0, 0)
    assert os.pread(fd, 7, 0) == b"changed"
    os.close(fd)


def test_of_somebody_with_limits(folder, below):
    """Writeback by a drop isn't the caller's own write: neither the caller's RLIMIT_FSIZE nor a signal
    ends it."""
    fd = made(folder)
    code = f"""import os, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.posix_fadvise(os.open({str(folder / "f")!r}, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert pages(fd) == 0
    os.fsync(fd)
    drop_caches()
    assert (below / "f").read_bytes()[:7] == b"changed"
    os.close(fd)


def test_clean_pages_cost_no_write(folder, shared):
    fd = made(folder)
    run(f"forebay drain {MOUNT}")
    assert info(fd)[4:6] == (32, 0)
    os.sync()
    writes = shared.writes()
    assert drop(fd) == (32, 0, 0)
    assert shared.writes() - writes < 10
    os.close(fd)


def test_fadvise_takes_whole_pages(folder):
    """As in Linux, fadvise keeps a page that is only partly in the range. A length of 0 means to the end
    of the file."""
    fd = made(folder)
    os.posix_fadvise(fd, PAGE + 1, 3 * PAGE, os.POSIX_FADV_DONTNEED)
    assert [pages(fd, p * PAGE, PAGE) for p in range(6)] == [1, 1, 0, 0, 1, 1]
    os.posix_fadvise(fd, 10 * PAGE, 0, os.POSIX_FADV_DONTNEED)
    assert pages(fd) == 8
    for advice in (os.POSIX_FADV_NORMAL, os.POSIX_FADV_WILLNEED, os.POSIX_FADV_SEQUENTIAL):
        os.posix_fadvise(fd, 0, 0, advice)
    assert pages(fd) == 8
    os.close(fd)


def test_mapped_pages_are_dropped(folder):
    """After a drop the mappings fault the page in again from its new place; no data are lost."""
    fd = made(folder)
    with Mapping(fd, 32 * PAGE, DAX) as dax, Mapping(fd, 32 * PAGE, MAP_SHARED) as plain:
        for page in range(32):
            dax.write(page * PAGE + 8, b"by dax")
            plain.write(page * PAGE + 16, b"plain")
        assert drop(fd) == (32, 0, 0)
        for page in range(32):
            assert plain.read(page * PAGE + 8, 13) == b"by dax" + (b"oo") + b"plain"
        dax.write(0, b"again")
        assert pages(fd) >= 1 and os.pread(fd, 5, 0) == b"again"
    os.close(fd)


def test_pinned_pages_stay(folder):
    fd = made(folder)
    on_range(fd, IOC_PIN, 0, 10 * PAGE)
    assert drop(fd) == (22, 10, 0)
    assert pages(fd) == 10
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert pages(fd) == 10
    os.close(fd)


def test_pages_in_use_by_hardware_stay(folder):
    """A buffer that io_uring has registered is pinned for DMA until it is unregistered."""
    fd = made(folder)
    mapping = Mapping(fd, 4 * PAGE, DAX)
    mapping.read(0, 4 * PAGE)
    mapping.write(PAGE - 1, b"!!")    # a page that was never writable in a mapping has readers only
    params = ctypes.create_string_buffer(120)
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(425, 4, params)
    assert ring >= 0

    class Iovec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    # Linux refuses to register memory of a file for long, since such pages can't be moved. A pipe that is
    # given the pages holds references to them, too.
    vector = Iovec(mapping.address, 2 * PAGE)
    registered = libc.syscall(427, ring, 0, ctypes.byref(vector), 1) == 0
    reader, writer = os.pipe()
    if not registered:
        assert libc.vmsplice(writer, ctypes.byref(vector), 1, 0) == 2 * PAGE
    assert info(fd).busy == 2
    assert drop(fd) == (30, 0, 2)
    assert os.pread(fd, 7, 0) == b"changed"
    os.read(reader, 2 * PAGE) if not registered else None
    os.close(ring)
    os.close(reader)
    os.close(writer)
    for _ in range(600):
        if not info(fd).busy:
            break
        time.sleep(0.1)
    assert drop(fd) == (2, 0, 0)
    mapping.close()
    os.close(fd)


def test_drop_beside_writers(folder):
    """A drop may leave pages that change all the time; no data are lost."""
    fd = made(folder)
    stop = threading.Event()
    last = [0] * 32

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            os.pwrite(fd, number.to_bytes(8, "little"), number % 32 * PAGE)
            last[number % 32] = number

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(20):
        dropped, pinned, busy = drop(fd)
        assert pinned == 0 and dropped + busy <= 32 * 3
    stop.set()
    thread.join()
    for page in range(32):
        assert os.pread(fd, 8, page * PAGE) == last[page].to_bytes(8, "little") or not last[page]
    os.close(fd)


def test_command(stack):
    """forebay pin, unpin, attach, detach, drop, status FILE; exit status and JSON."""
    path = MOUNT / "a file"
    path.write_bytes(b"x" * 64 * PAGE)
    run(f"sync {MOUNT}/*")

    def command(*words, status=0):
        done = subprocess.run(["forebay", *words], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == status, done.stderr
        return done.stdout or done.stderr

    def ranges():
        [found] = json.loads(command("status", "--json", path))
        assert found["file"] == str(path) and found["size"] == 64 * PAGE
        return [(r["offset"] // PAGE, r["length"] // PAGE, r["attributes"], r["pinned"]) for r in found["ranges"]]

    command("pin", path, "16k:64K")
    command("attach", path, f"{40 * PAGE}")
    assert ranges() == [(0, 4, [], 0), (4, 16, ["pinned"], 16), (20, 20, [], 0), (40, END - 40, ["attached"], 0)]
    table = command("status", path)
    assert "pinned" in table and "attached" in table and "in the cache" in table and f"{40 * PAGE}     to any end" in table
    assert "0 dropped" not in command("drop", path, status=4)
    assert json.loads(command("drop", "--json", path, status=4)) == {"dropped": 0, "pinned": 16, "busy": 0}
    assert "64.0 KiB of" in command("status") or "64 KiB of" in command("status")
    command("unpin", path, "16k:32k")
    command("detach", path)
    assert ranges() == [(0, 12, [], 0), (12, 8, ["pinned"], 8), (20, 44, [], 0)]
    command("unpin", path)
    assert "64 KiB dropped" in command("drop", path)
    for bad in ("16k:", ":", "x", "1:0", "1q", "1:2:3"):
        assert "invalid range" in command("pin", path, bad, status=16)
    assert "expected a file" in command("pin", status=16)
    assert "not on a forebay mount" in command("pin", "/etc/passwd", status=8)
    assert "cannot open" in command("drop", "/nowhere", status=8)
    assert "no such range" in command("pin", path, "1m:1m", status=8)
    assert "no such range" in command("pin", MOUNT, status=8)
    run(f"mount -o remount,pin_limit=64k {MOUNT}")
    assert "cannot pin so many" in command("pin", path, status=8)


def test_command_and_an_empty_log(stack):
    """What is attached is what the file may become, too; and what can't be written to can be detached."""
    path = MOUNT / "log"
    path.touch()

    def ranges():
        [found] = json.loads(run(f"forebay status --json {path}"))
        return [(r["offset"], r["length"] // PAGE, r["attributes"], r["out_of_sync"]) for r in found["ranges"]]

    assert ranges() == []
    run(f"forebay attach {path}")
    assert ranges() == [(0, END, ["attached"], 0)]
    path.write_bytes(b"five!" * PAGE + b"1")
    assert ranges() == [(0, END, ["attached"], 6)]
    run(f"forebay detach {path} 010:{8 * PAGE - 10}")   # not octal
    assert ranges() == [(0, 5, [], 6), (8 * PAGE, END - 8, ["attached"], 0)]
    run(f"forebay detach {path}; forebay attach {path} {4 * PAGE}:{PAGE}; forebay attach {path} {64 * PAGE}:{2 * PAGE}")
    assert ranges() == [(0, 4, [], 4), (4 * PAGE, 1, ["attached"], 1), (5 * PAGE, 0, [], 1), (64 * PAGE, 2, ["attached"], 0)]
    run(f"chattr +i {path}")
    assert "is immutable" in run(f"forebay attach {path}", check=False)
    run(f"forebay detach {path}; chattr -i {path}")
    assert "only root may attach" in run(f"setpriv --bounding-set -sys_admin forebay attach {path}", check=False)
    assert [found[:3] for found in ranges()] == [(0, 5, [])]
    run(f"forebay attach {path}; mount -o remount,ro {MOUNT}")
    run(f"forebay detach {path}")
    assert stack.value("pages_pinned") == 0 and len(ranges()) == 1
    run(f"mount -o remount,rw {MOUNT}")

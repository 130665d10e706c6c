# SPDX-License-Identifier: GPL-2.0-only
"""Processes share mutexes and condition variables in a page, while others move it into and out of PMem."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from libc import drop, fallocate, pages
from other_user import become
from stack import MOUNT, PAGE, Stack, create_emulated, run

USER = 1234
SECONDS = float(os.environ.get("FOREBAY_SECONDS", "8"))
MOVES = 8       # at least, of the page, each way; a test goes on until then
TRIES = 4


@pytest.fixture(name="futex", scope="module")
def futex_fixture():
    """The helper, compiled."""
    helper = "/run/futex"
    run(f"gcc -O1 -Wall -Wextra -pthread -o {helper} {Path(__file__).parent / 'futex.c'}")
    return helper


@pytest.fixture(name="stranger")
def stranger_fixture():
    """Runs a function again and again in a process of another user; ends with the test."""
    children = []

    def start(function):
        child = os.fork()
        if not child:
            become(USER)
            try:
                while True:
                    function()
            finally:
                os._exit(1)
        children.append(child)

    yield start
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def syncing(path):
    """Returns a function that does sync(1) of a file with a read-only descriptor."""
    def sync():
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        time.sleep(0.002)
    return sync


def write_beside(fd, number):
    """Writes to the volatile page, so that its next sync moves it into PMem."""
    os.pwrite(fd, b"%8d" % number, PAGE - 8)


def lock_file(folder):
    """Makes a file of one page, readable for all users, with the first sync that a new file needs."""
    path = folder / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.fchmod(fd, 0o644)
    os.pwrite(fd, bytes(PAGE), 0)
    os.fsync(fd)
    return path, fd


def share_and_move(command, fd, shared):
    """Runs the helper while the page goes to PMem and back below. No process may fail, and all waiters must be woken. Returns
    whether there were enough rounds, and enough moves each way; a busy host makes a tenth of a quiet one's rounds."""
    moves = {"in": 0, "out": 0}
    number = 0
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as helper:
        while helper.poll() is None:
            number += 1
            # Not before the helper has its handler for the signal.
            elapsed = time.monotonic() - began
            if elapsed > 15 * SECONDS or (elapsed > SECONDS and min(moves.values()) >= MOVES):
                helper.terminate()
            if pages(fd):
                if number % 8:
                    moves["out"] += drop(fd)[0]
                else:
                    shared.drain()
                    moves["out"] += drop(fd)[0]
            else:
                write_beside(fd, number)
                os.fsync(fd)
                moves["in"] += pages(fd)
        out, err = helper.communicate()
    print(*command[2:], out.strip(), "rounds", moves)
    assert helper.returncode == 0, (helper.returncode, out, err)
    return int(out) > 10 * SECONDS and min(moves.values()) >= MOVES


@pytest.mark.parametrize("way", ["", "sync"])
@pytest.mark.parametrize("kind", ["plain", "pi", "robust"])
def test_moving_page(folder, shared, futex, stranger, kind, way):
    """Only a run that was too slow is repeated: a process that hangs or fails does so by chance, and must not be forgiven."""
    path, fd = lock_file(folder)
    command = [futex, path, kind, str(SECONDS)] + ([way] if way else [])
    stranger(syncing(path))
    assert any(share_and_move(command, fd, shared) for _ in range(TRIES)), "too slow each time"
    os.close(fd)


def until_it_waits(process):
    """Returns when a process sleeps in FUTEX_WAIT: on a busy host an interpreter takes seconds to come to that."""
    end = time.monotonic() + 60
    while "futex" not in Path(f"/proc/{process.pid}/wchan").read_text(encoding="ascii"):
        assert process.poll() is None and time.monotonic() < end, "it doesn't wait"
        time.sleep(0.01)


def test_waiter_is_woken_after_a_move(folder, futex):
    """A waiter slept on the page in one place; a waker that finds the page in the other place wakes it."""
    del futex
    path, fd = lock_file(folder)
    program = ("import ctypes,mmap,os,sys\n"
               f"fd=os.open({str(path)!r},os.O_RDWR)\n"
               "m=mmap.mmap(fd,4096)\n"
               "word=ctypes.c_uint32.from_buffer(m)\n"
               "address=ctypes.c_void_p(ctypes.addressof(word))\n"
               "libc=ctypes.CDLL(None,use_errno=True)\n"
               "print('ready',flush=True)\n"
               "r=libc.syscall(202,address,0,0,None,None,0)\n"       # FUTEX_WAIT, shared
               "print(r,ctypes.get_errno(),flush=True)\n")
    waker = program.replace("address,0,0,None,None,0", "address,1,1,None,None,0")    # FUTEX_WAKE
    for direction in ("in", "out"):
        if direction == "out":
            write_beside(fd, 1)
            os.fsync(fd)
            assert pages(fd) == 1
        with subprocess.Popen(["/usr/bin/python3", "-c", program], stdout=subprocess.PIPE, text=True) as waiter:
            try:
                assert waiter.stdout.readline() == "ready\n"
                until_it_waits(waiter)
                if direction == "in":
                    write_beside(fd, 2)
                    os.fsync(fd)
                    assert pages(fd) == 1
                else:
                    assert drop(fd)[0] == 1 and pages(fd) == 0
                answer = subprocess.run(["/usr/bin/python3", "-c", waker], stdout=subprocess.PIPE, text=True, check=True).stdout
                assert answer == "ready\n1 0\n", (direction, answer)
                assert waiter.communicate(timeout=60)[0] == "0 0\n"
            finally:
                waiter.kill()
        drop(fd)
        assert pages(fd) == 0
    os.close(fd)


def test_another_file_is_another_futex(folder, futex):
    """A wake at the same page number of a second file wakes no waiter."""
    del futex
    keys = []
    for name in ("a", "b"):
        fd = os.open(folder / name, os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, bytes(PAGE), 0)
        os.fsync(fd)
        os.pwrite(fd, bytes(PAGE), 0)
        os.fsync(fd)
        assert pages(fd) == 1
        keys.append(fd)
    program = ("import ctypes,mmap,os,sys\n"
               "fd=os.open(sys.argv[1],os.O_RDWR)\n"
               "m=mmap.mmap(fd,4096)\n"
               "word=ctypes.c_uint32.from_buffer(m)\n"
               "address=ctypes.c_void_p(ctypes.addressof(word))\n"
               "libc=ctypes.CDLL(None,use_errno=True)\n"
               "print(libc.syscall(202,address,int(sys.argv[2]),int(sys.argv[3]),None,None,0),flush=True)\n")
    with subprocess.Popen(["/usr/bin/python3", "-c", program, folder / "a", "0", "0"]) as waiter:
        until_it_waits(waiter)
        woken = [subprocess.run(["/usr/bin/python3", "-c", program, folder / name, "1", "9"], stdout=subprocess.PIPE, text=True,
                                check=True).stdout for name in ("b", "a")]
        waiter.wait(60)
    assert woken == ["0\n", "1\n"]
    for fd in keys:
        os.close(fd)


def test_pages_are_given_back_nameless(stack, futex):
    """A later DAX file system on the device finds no page with an owner (the kernel would warn)."""
    del futex
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    for number in range(64):
        os.pwrite(fd, bytes(PAGE), number * PAGE)
    os.fsync(fd)
    for number in range(64):
        os.pwrite(fd, b"x", number * PAGE)
    os.fsync(fd)
    assert pages(fd) > 32
    fallocate(fd, 3, 0, 8 * PAGE)
    os.close(fd)
    stack.umount()
    run(f"mkfs.ext4 -Fq -b 4096 {stack.cache}; mkdir -p /mnt/dax; mount -o dax {stack.cache} /mnt/dax")
    run("dd if=/dev/zero of=/mnt/dax/f bs=1M count=16 conv=fsync,notrunc; umount /mnt/dax")
    run(f"forebay format --force {stack.cache}")
    stack.mount()


@pytest.fixture(name="emulated")
def emulated_fixture():
    """forebay with a cache in ordinary memory."""
    run("modprobe forebay-emu; modprobe forebay; umount /mnt/fb /mnt/lower || true")
    stack = Stack(cache=create_emulated("--size 32M"))
    stack.mount = lambda: Stack.mount(stack, "allow_volatile_cache")
    yield stack.make()
    stack.destroy()
    run(f"forebay emu remove {stack.cache}")


def test_emulated_device(emulated, futex, stranger):
    """In emulated PMem no futex works: no process's sync moves a page there that processes share."""
    del emulated
    path, fd = lock_file(MOUNT)
    with subprocess.Popen([futex, path, "plain", "5"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as helper:
        while helper.poll() is None and str(path) not in Path(f"/proc/{helper.pid}/maps").read_text(encoding="utf-8"):
            time.sleep(0.01)
        stranger(syncing(path))
        number = 0
        end = time.monotonic() + 5
        while helper.poll() is None:
            if time.monotonic() > end:
                helper.terminate()
            write_beside(fd, number := number + 1)
            os.fsync(fd)
            assert not pages(fd) or helper.wait(100) is not None   # it has unmapped the file and ends
        assert helper.returncode == 0, helper.communicate()
    write_beside(fd, 0)
    os.fsync(fd)
    assert pages(fd) == 1
    os.close(fd)

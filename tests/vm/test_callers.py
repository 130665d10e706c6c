# SPDX-License-Identifier: GPL-2.0-only
"""Which process makes sync calls on which file: the trace event of each call, and forebay top --callers."""

import contextlib
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl
from pathlib import Path

from clock import BY_THE_CLOCK
from stack import MOUNT, PAGE, run

TRACING = Path("/sys/kernel/tracing")
EVENT = TRACING / "events/forebay/fb_sync/enable"
INTERVAL = 15       # s: a slow machine takes a third of it for all calls
ME, PROGRAM = os.getpid(), Path("/proc/self/comm").read_text(encoding="ascii").strip()


def settled_file(folder, name="f"):
    """An open file whose name and contents are durable below."""
    fd = os.open(folder / name, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, bytes(64 * PAGE), 0)
    os.fsync(fd)
    run(f"forebay drain {folder}")
    os.sync()
    return fd


@contextlib.contextmanager
def top(*arguments):
    """forebay top --callers as text; it has printed the first look, so tracing is on."""
    with subprocess.Popen(["forebay", "top", "--callers", "--batch", *arguments], text=True, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == "No sync calls on Forebay since the last look.\n"
        yield child


def callers_in(text):
    """By file: the PID, the program, and the calls a second, all and those that waited for storage."""
    lines = [re.fullmatch(r"(\d+) +(\S+) +(\d+) +(\d+) +<[\d.]+ [mu]s +<[\d.]+ [mu]s  (.+)", line)
             for line in text.splitlines() if not line.startswith("PID")]
    return {file: (int(pid), program, int(calls), int(below)) for pid, program, calls, below, file in
            (line.groups() for line in lines if line)}


def instances():
    return [path.name for path in (TRACING / "instances").iterdir()]


def test_event(folder):
    """A sync call of memory alone, one that moves a page, one that storage has to do, one of the folder."""
    fd = settled_file(folder)
    parent = os.open(folder, os.O_RDONLY)
    (TRACING / "trace").write_text("")
    EVENT.write_text("1")
    os.fdatasync(fd)
    os.pwrite(fd, b"x", 0)
    os.fdatasync(fd)
    os.fchmod(fd, 0o640)
    os.fsync(fd)
    os.fsync(parent)
    EVENT.write_text("0")
    os.fdatasync(fd)
    text = (TRACING / "trace").read_text(encoding="ascii")
    found = re.findall(r"fb_sync: dev=(\d+):(\d+) ino=(\d+) pid=(\d+) comm=(\S+) kind=(\w+) ns=(\d+)", text)
    st = os.fstat(fd)
    assert all((os.makedev(int(call[0]), int(call[1])), int(call[3]), call[4]) == (st.st_dev, ME, PROGRAM) for call in found)
    assert [(int(call[2]), call[5]) for call in found[:3]] == [(st.st_ino, kind) for kind in ("memory", "move", "storage")]
    assert len(found) == 4 and int(found[3][2]) == os.fstat(parent).st_ino
    assert all(int(call[6]) > 100 for call in found), "nanoseconds"
    for one in (fd, parent):
        os.close(one)


@BY_THE_CLOCK
def test_top(folder):
    """150 calls of which 30 are storage's, on an open file; 60 on a file that is closed; a call of a program that
    has ended since. All in one interval."""
    fd, closed = settled_file(folder, "an open file"), settled_file(folder, "closed")
    inodes = os.fstat(fd).st_ino, os.fstat(closed).st_ino
    begun = time.monotonic()
    with top("--interval", str(INTERVAL), "--count", "2") as child:
        for i in range(120):
            os.pwrite(fd, b"x" * 10, i % 60 * PAGE)
            os.fdatasync(fd)
        for i in range(30):
            os.fchmod(fd, 0o600 + i % 2)
            os.fsync(fd)
        for i in range(60):
            os.fdatasync(closed)
        os.close(closed)
        run(f"sync '{folder}/an open file'")
        assert time.monotonic() - begun < INTERVAL, "the calls took longer than the interval: the test shows nothing"
        text = child.stdout.read()
        took = time.monotonic() - begun
    assert child.returncode == 0 and instances() == []
    found = callers_in(text)
    still_open, ended, closed = str(folder / "an open file"), *(f"{MOUNT}: inode {inode}" for inode in inodes)
    assert list(found) == [still_open, closed, ended], f"those with most calls first: {text}"
    assert found[still_open][:2] == (ME, PROGRAM) and found[ended][1] == "sync" and found[ended][0] != ME
    for (_, _, calls, below), made, made_below in ((found[still_open], 150, 30), (found[closed], 60, 0)):
        assert made / took - 1 <= calls <= made / INTERVAL + 1 and made_below / took - 1 <= below <= made_below / INTERVAL + 1
    os.close(fd)


def test_a_signal_ends_tracing(folder):
    """So does a process group's Ctrl-C, and a pipe whose reader has ended."""
    del folder
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        with top("--interval", "600") as child:
            assert instances() == [f"forebay-top-{child.pid}"]
            child.send_signal(number)
            assert child.wait(60) == -number
        assert instances() == []
    with top("--interval", "0.1") as child:
        child.stdout.close()
        assert child.wait(60) == -signal.SIGPIPE
    assert instances() == []


def test_without_root(folder):
    del folder
    done = subprocess.run(["setpriv", "--reuid", "1000", "--clear-groups", "forebay", "top", "--callers", "--count", "1"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 8 and "that takes root" in done.stderr and not done.stdout


def shown_until(master, wanted, between=None):
    """Reads a terminal until its text has something; calls a function now and then."""
    shown, deadline = "", time.monotonic() + 120
    while wanted not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([master], [], [], 0.5)[0]:
            shown += os.read(master, 65536).decode()
        if between:
            between()


def test_on_a_terminal(folder):
    """c shows callers, and c again caches; tracing is on in between alone."""
    fd = settled_file(folder, "seen")
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 140, 0, 0))
    with subprocess.Popen(["forebay", "top", "--interval", "30"], stdin=slave, stdout=slave, stderr=slave,
                          env={**os.environ, "TERM": "xterm"}) as child:
        shown_until(master, "CLEAN IN")
        assert instances() == []
        os.write(master, b"c")
        shown_until(master, "/seen", lambda: os.fdatasync(fd))
        assert instances() == [f"forebay-top-{child.pid}"]
        os.write(master, b"c")
        shown_until(master, "CLEAN IN")
        assert instances() == []
        os.write(master, b"cq")
        while child.poll() is None:
            if select.select([master], [], [], 0.2)[0]:
                os.read(master, 65536)
    assert child.returncode == 0 and instances() == []
    for one in (master, slave, fd):
        os.close(one)

# SPDX-License-Identifier: GPL-2.0-only
"""forebay advise beside a program that is known. Runs in the test machine."""

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import DONE, FAILED
from machine import needs, sh

NVME, MOUNT, INSTANCES = Path("/dev/nvme0n1"), Path("/tmp/advised"), Path("/sys/kernel/tracing/instances")
PAGE = 4096

pytestmark = needs(NVME)


@pytest.fixture(name="folder", params=["mkfs.ext4 -q -F", "mkfs.xfs -q -f"], ids=["ext4", "xfs"])
def folder_fixture(request):
    """A file system on the SSD."""
    MOUNT.mkdir(exist_ok=True)
    sh(*request.param.split(), NVME)
    sh("mount", NVME, MOUNT)
    yield MOUNT
    sh("umount", MOUNT)


def work(folder):
    """200 pages twice, a call each; a MiB in one call; 10 pages through a mapping; the folder."""
    fd = os.open(folder / "pages", os.O_RDWR | os.O_CREAT)
    for page in [*range(200)] * 2:
        os.pwrite(fd, bytes(PAGE), page * PAGE)
        os.fdatasync(fd)
    with mmap.mmap(fd, 10 * PAGE) as mapping:
        for page in range(10):
            mapping[page * PAGE] = 1
        mapping.flush()
    os.close(fd)
    for path, flags, data in ((folder / "piece", os.O_WRONLY | os.O_CREAT, bytes(1 << 20)), (folder, os.O_RDONLY, None)):
        fd = os.open(path, flags)
        if data:
            os.write(fd, data)
        os.fsync(fd)
        os.close(fd)


def until_it_traces(watcher):
    """The last event that it enables."""
    until = time.monotonic() + 120
    while not any(path.read_text().strip() == "1" for path in INSTANCES.glob("*/events/writeback/writeback_dirty_folio/enable")):
        assert time.monotonic() < until and watcher.poll() is None
        time.sleep(0.1)


def test_advise(command, folder):
    """It ends at a signal, and leaves nothing behind."""
    with subprocess.Popen([command, "advise", "--json", "--seconds", "600", folder], stdout=subprocess.PIPE) as watcher:
        until_it_traces(watcher)
        work(folder)
        watcher.send_signal(signal.SIGINT)
        found = json.loads(watcher.communicate()[0])
        assert watcher.returncode == DONE
    assert (found["sync_calls"], found["sync_calls_without_data"], found["files"]) == (403, 1, 2)
    assert (found["pages"], found["distinct_pages"], found["largest_call_pages"]) == (400 + 10 + 256, 456, 256)
    assert (found["busiest_pages"], found["recommended_bytes"], found["lost_events"]) == (456, 64 << 20, 0)
    (size,) = found["sizes"]
    assert (size["pages_synced_again"], size["bytes_to_ssd"]) == (210, 456 * PAGE)
    (caller,) = found["callers"]
    assert (caller["thread"], caller["sync_calls"], caller["pages"]) == (os.getpid(), 403, 666)
    assert list(INSTANCES.iterdir()) == []


def tracing_for(command, folder, **how):
    """A process that has begun to trace."""
    watcher = subprocess.Popen([command, "advise", "--seconds", "600", folder], **how)
    until = time.monotonic() + 60
    while not list(INSTANCES.iterdir()):
        assert time.monotonic() < until and watcher.poll() is None
        time.sleep(0.05)
    return watcher


@pytest.mark.parametrize("how", ["time", "signal"])
def test_events_faster_than_they_are_read(command, folder, how):
    """Programs write all the time: the watching ends nevertheless, and shows what was seen."""
    writers = []
    with subprocess.Popen([command, "advise", "--json", "--seconds", "20" if how == "time" else "600", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watcher:
        until_it_traces(watcher)
        try:
            for number in range(6):
                writers.append(subprocess.Popen(["dd", "if=/dev/zero", f"of={folder}/{number}", "bs=16", "count=200M", "conv=notrunc",
                                                 "status=none"]))
            time.sleep(5)
            if how == "signal":
                watcher.send_signal(signal.SIGINT)
            found = json.loads(watcher.communicate(timeout=120)[0])
            assert watcher.returncode == DONE and 5 <= found["seconds"] < 60
        finally:
            watcher.kill()
            for writer in writers:
                writer.kill()
                writer.wait()
    for left in INSTANCES.iterdir():
        left.rmdir()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_end_the_tracing(command, folder, number):
    """Also that of a terminal that is gone."""
    with tracing_for(command, folder, stdout=subprocess.DEVNULL) as watcher:
        watcher.send_signal(number)
        assert watcher.wait(60) == DONE
    assert list(INSTANCES.iterdir()) == []


def test_progress_without_a_reader(command, folder):
    """The pipe of standard error is closed: nothing is left behind."""
    with tracing_for(command, folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watcher:
        watcher.stderr.close()
        time.sleep(3)
        assert watcher.poll() is None, "it goes on"
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(60) == DONE
    assert list(INSTANCES.iterdir()) == []


def test_a_program_with_a_hostile_name(forebay, folder):
    """Its name can't steer the terminal."""
    program = "import ctypes, os, sys, time\nctypes.CDLL(None).prctl(15, b'a\\x1b[31mb', 0, 0, 0)\n" \
        "fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\nwhile True: os.write(fd, b'x'), os.fsync(fd), time.sleep(.05)"
    with subprocess.Popen([sys.executable, "-c", program, folder / "file"]) as writer:
        result = forebay("advise", "--seconds", "1", folder)
        writer.kill()
    assert result.status == DONE and "a?[31mb" in result.out and "\x1b" not in result.out


def test_nothing_synced(forebay, folder):
    result = forebay("advise", "--seconds", "1", folder)
    assert result.status == DONE and "0 sync calls. A cache would change nothing here." in result.out


def test_what_cannot_be_watched(forebay):
    result = forebay("advise", "--seconds", "1", "/proc")
    assert result.status == FAILED and "/proc: on a file system that can't be watched" in result.err

# SPDX-License-Identifier: GPL-2.0-only
"""Tasks that are killed within a call: the task ends soon, the file has what it had or what the call makes, page by page, and the
same after an unmount."""

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import clean_up
from libc import COLLAPSE_RANGE, INSERT_RANGE, IOC_DRAIN, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, fallocate
from stack import LOWER, MOUNT, PAGE, Stack, drop_caches, run, small_cache

NUMBER = 768        # pages
TIMES = 3           # that a call is killed
SOON = 30           # seconds


@pytest.fixture(name="small", scope="module", params=["ext4", "xfs"])
def small_fixture(request):
    """A cache of 12 MiB, so that files are written back meanwhile."""
    clean_up()
    stack = Stack(fs=request.param, cache=small_cache(12)).make()
    yield stack
    os.chdir("/")
    stack.destroy()
    clean_up()


def page_of(number, turn):
    """A page that tells which it is."""
    return b"%07d %07d " % (number, turn) * (PAGE // 16)


def told(data):
    """What pages tell of themselves: (number, turn), or None for zeros. A torn page fails."""
    answer = []
    for at in range(0, len(data), PAGE):
        page = data[at:at + PAGE]
        if not any(page):
            answer.append(None)
            continue
        number, turn = int(page[:7]), int(page[8:15])
        assert page == page_of(number, turn), f"page {at // PAGE} is torn"
        answer.append((number, turn))
    return answer


def fill(path, turn):
    """A new file of so many pages, synced, some of them in PMem."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, b"".join(page_of(number, turn) for number in range(NUMBER)), 0)
    os.fsync(fd)
    for first in range(0, NUMBER, 8):
        os.pwrite(fd, page_of(first, turn), first * PAGE)
        os.fdatasync(fd)
    return fd


def kill_within(action):
    """Has a child do this again and again, and kills it; fails if it doesn't end soon."""
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            while True:
                action()
        os._exit(1)
    time.sleep(random.uniform(0.01, 0.5))
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + SOON
    while not (status := os.waitpid(pid, os.WNOHANG)[1]) and time.monotonic() < end:
        time.sleep(0.01)
    assert status == signal.SIGKILL, f"status {status}"


class Play:
    """One child's life, and what its file may have then."""

    def __init__(self, folder):
        self.path, self.source = folder / "f", folder / "source"
        self.fd, self.turn = fill(self.path, 0), 0

    def step(self):
        """In the child."""
        raise NotImplementedError

    def check(self, pages):
        """What the file's pages tell."""
        assert [number for number, _ in pages] == list(range(NUMBER))

    def close(self):
        """At the end."""
        os.close(self.fd)


class Fsync(Play):
    """Many volatile pages are synced."""

    def step(self):
        self.turn += 1
        for number in range(NUMBER):
            os.pwrite(self.fd, page_of(number, self.turn), number * PAGE)
        os.fsync(self.fd)


class Stores(Play):
    """The same by stores in a MAP_SYNC mapping of more pages than are free."""

    def step(self):
        self.turn += 1
        with Mapping(self.fd, NUMBER * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
            for number in range(0, NUMBER, 3):
                mapping.write(number * PAGE + PAGE - 16, b"%07d %07d " % (number, 0))
            mapping.sync()


class Write(Play):
    """One large write."""

    def step(self):
        self.turn += 1
        os.pwrite(self.fd, b"".join(page_of(number, self.turn) for number in range(NUMBER)), 0)
        os.fdatasync(self.fd)


class Move(Play):
    """A page is inserted and collapsed, in a file with pages in PMem."""

    def step(self):
        fallocate(self.fd, INSERT_RANGE, 0, PAGE)
        fallocate(self.fd, COLLAPSE_RANGE, 0, PAGE)
        os.pwrite(self.fd, page_of(7, 0), 7 * PAGE)
        os.fdatasync(self.fd)

    def check(self, pages):
        if len(pages) > NUMBER:
            assert pages.pop(0) is None
            fallocate(self.fd, COLLAPSE_RANGE, 0, PAGE)
        super().check(pages)


class Copy(Play):
    """copy_file_range(2) from a file with pages in PMem."""

    def __init__(self, folder):
        super().__init__(folder)
        self.other = fill(self.source, 1)

    def step(self):
        os.copy_file_range(self.other, self.fd, NUMBER * PAGE, 0, 0)
        os.pwrite(self.other, page_of(3, 2), 3 * PAGE)
        os.fdatasync(self.other)

    def close(self):
        os.close(self.other)
        super().close()


class Send(Copy):
    """sendfile(2)."""

    def step(self):
        os.lseek(self.fd, 0, os.SEEK_SET)
        done = 0
        while done < NUMBER * PAGE:
            done += os.sendfile(self.fd, self.other, done, NUMBER * PAGE - done)
        os.fdatasync(self.fd)


class Drain(Play):
    """Everything is written back."""

    def step(self):
        self.turn += 1
        for number in range(0, NUMBER, 4):
            os.pwrite(self.fd, page_of(number, self.turn), number * PAGE)
        os.fdatasync(self.fd)
        fcntl.ioctl(self.fd, IOC_DRAIN)


class Truncate(Play):
    """The file is made shorter and longer."""

    def step(self):
        os.ftruncate(self.fd, 5 * PAGE)
        for number in range(5, NUMBER // 4):
            os.pwrite(self.fd, page_of(number, 9), number * PAGE)
        os.fsync(self.fd)

    def check(self, pages):
        assert [number for number, _ in pages] == list(range(len(pages)))


@pytest.mark.parametrize("play", [Fsync, Stores, Write, Move, Copy, Send, Drain, Truncate])
def test_killed_in_a_call(small, play):
    """Again and again; then everything is below."""
    folder = MOUNT / play.__name__
    folder.mkdir()
    played = play(folder)
    for _ in range(TIMES):
        kill_within(played.step)
        played.check(told(played.path.read_bytes()))
    os.fsync(played.fd)
    played.close()
    pages = played.path.read_bytes()
    small.umount()
    drop_caches()
    assert (LOWER / play.__name__ / "f").read_bytes() == pages
    small.mount()
    assert played.path.read_bytes() == pages
    run(f"rm -r {folder}")
    small.drain()


def kill_command(command):
    """Runs a command and kills it and its helper, perhaps after their end. Returns when both are gone."""
    with subprocess.Popen(command.split(), stderr=subprocess.DEVNULL, start_new_session=True) as process:
        time.sleep(random.uniform(0, 0.15))
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.killpg(process.pid, 0)
            time.sleep(0.01)


def test_mount_and_umount_killed(small):
    """Of a cache as a crash leaves it: a later mount has everything."""
    fd = fill(MOUNT / "f", 0)
    os.close(fd)
    before = small.value("pages_out_of_sync")
    run(f"dd if={small.cache} of=/tmp/cache bs=1M iflag=direct status=none")
    small.umount()
    for _ in range(TIMES):
        run(f"dd if=/tmp/cache of={small.cache} bs=1M oflag=direct conv=fsync status=none")
        kill_command(f"mount -t forebay -o cache={small.cache} {LOWER} {MOUNT}")
        if not os.path.ismount(MOUNT):
            small.mount()
        assert told((MOUNT / "f").read_bytes()) == [(number, 0) for number in range(NUMBER)]
        kill_command(f"umount {MOUNT}")
        if os.path.ismount(MOUNT):
            small.umount()
    assert before
    os.unlink("/tmp/cache")
    small.mount()
    assert told((MOUNT / "f").read_bytes()) == [(number, 0) for number in range(NUMBER)]

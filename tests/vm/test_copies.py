# SPDX-License-Identifier: GPL-2.0-only
"""What is counted of copies to and from persistent memory, and how they are limited."""

import mmap
import os
import re
import resource
import signal
import threading
import time
from pathlib import Path

import pytest
from clock import BY_THE_CLOCK
from other_user import NOBODY, SOMEBODY, as_nobody, as_user, begin, run_as, value_of
from stack import MOUNT, PAGE, SSD, Stack, create_emulated, fails, run

MIB, PIECE = 1 << 20, 1 << 16
SIZE = 2 * MIB          # of a file, all of it in PMem
LIMIT = 2 * MIB
SECONDS = 3
WITHIN = 1.10
SLOW = "64k"            # a second: what test_debt's calls have copied is worth half a minute
TRACING = Path("/sys/kernel/tracing")
COUNTS = ("copied_in", "copied_out", "copied_back", "mapped_stores")
LIMITS = ("copy_limit", "copy_limit_user")
SHOWN = (*COUNTS, *LIMITS, "copy_tasks")        # to root


def cached_file(name, size=SIZE):
    """A file whose pages are all in PMem; every user may write to it."""
    path = MOUNT / name
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.fchmod(fd, 0o666)
    os.fsync(fd)
    for place in range(0, size, PIECE):
        os.pwrite(fd, os.urandom(PIECE), place)
        os.fdatasync(fd)
    os.close(fd)
    return path


def test_counts(stack):
    """Each way that bytes take is counted, and told of with the process."""
    def counts():
        return [stack.value(name) for name in COUNTS]

    def changed(action):
        before = counts()
        action()
        return [now - then for then, now in zip(before, counts())]
    path = MOUNT / "f"
    assert changed(lambda: cached_file("f")) == [SIZE, 0, 0, 0]
    fd = os.open(path, os.O_RDWR)
    (TRACING / "trace").write_text("")
    (TRACING / "events/forebay/fb_copy/enable").write_text("1")
    assert changed(lambda: os.pwrite(fd, b"x" * 10000, 100)) == [10000, 0, 0, 0]
    assert changed(lambda: os.pread(fd, 3 * PAGE, 7)) == [0, 3 * PAGE, 0, 0]
    with mmap.mmap(fd, SIZE) as mapping:
        def store():
            for place in range(0, 10 * PAGE, PAGE):
                mapping[place] = 1
            mapping.flush()
        assert changed(store) == [0, 0, 0, 10 * PAGE]
    assert changed(lambda: run(f"forebay drain {MOUNT}"))[:3] == [0, 0, SIZE]
    (TRACING / "events/forebay/fb_copy/enable").write_text("0")
    text = (TRACING / "trace").read_text(encoding="ascii")
    found = re.findall(r"fb_copy: dev=(\d+):(\d+) pid=(\d+) comm=(\S+) uid=0 kind=(\w+) bytes=(\d+)", text)
    assert {os.makedev(int(one[0]), int(one[1])) for one in found} == {os.fstat(fd).st_dev}
    mine = [one for one in found if int(one[2]) == os.getpid()]
    sums = [sum(int(one[5]) for one in mine if one[4] == kind) for kind in ("in", "out", "mapped")]
    assert sums == [10000, 3 * PAGE, 10 * PAGE]
    assert re.search("copied +2.0 MiB in, 12 KiB out, 2.0 MiB for writeback; about 40 KiB stored in mappings$",
                     run(f"forebay status {MOUNT}"), re.MULTILINE)
    os.close(fd)


def test_for_root_alone(stack):
    """Another user learns nothing of counts and limits, and can't set these."""
    cached_file("f", PIECE)
    limit("1G", "1G")
    assert run_as(NOBODY, "mount", "-o", "remount,copy_limit=0", MOUNT, capture_output=True).returncode
    assert [stack.value(name) for name in LIMITS] == [1 << 30] * 2
    assert "copy" not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")

    def look():
        seen = []
        for name in SHOWN:
            try:
                seen.append((stack.sysfs / name).read_text())
            except PermissionError:
                pass
        return seen, "copied" in run(f"forebay status {MOUNT}"), "copied" in run("forebay metrics")
    assert as_nobody(look) == [[], False, False]
    assert len(look()[0]) == len(SHOWN) and look()[1:] == (True, True)


def limit(value, user=0):
    """A remount; the limits hold from now on."""
    run(f"mount -o remount,copy_limit={value},copy_limit_user={user} {MOUNT}")


def write_for(path, seconds, piece=PIECE):
    """Writes in place, and syncs; returns bytes a second."""
    fd, data = os.open(path, os.O_RDWR), b"w" * piece
    size = os.fstat(fd).st_size
    start, done = time.monotonic(), 0
    while time.monotonic() < start + seconds:
        os.pwrite(fd, data, done % size)
        os.fdatasync(fd)
        done += piece
    return done / (time.monotonic() - start)


def together(tasks, seconds=SECONDS, piece=PIECE):
    """What write_for() returns to the children that write to these files at once, each as its user."""
    children = [begin(uid, lambda path=path: write_for(path, seconds, piece)) for uid, path in tasks]
    return [value_of(*child) for child in children]


def took(action):
    """In seconds."""
    start = time.monotonic()
    action()
    return time.monotonic() - start


def test_option(stack):
    """They are changed by a remount that names them and by no other, and checked."""
    def limits():
        return [stack.value(name) for name in LIMITS]
    assert limits() == [0, 0]
    limit("1G", "64k")
    assert limits() == [1 << 30, 1 << 16]
    assert "at most 1.0 GiB a second, 64 KiB a second per user" in run(f"forebay status {MOUNT}")
    run(f"mount -o remount,mode=auto {MOUNT}")
    assert limits() == [1 << 30, 1 << 16]
    for wrong in ("-1", "x", "65535"):
        assert "copy_limit" in fails(f"mount -o remount,copy_limit={wrong} {MOUNT}")
    assert limits() == [1 << 30, 1 << 16]
    limit(0)
    assert limits() == [0, 0]
    stack.umount()
    stack.mount(f"copy_limit_user={LIMIT}")
    assert limits() == [0, LIMIT]


@BY_THE_CLOCK
@pytest.mark.parametrize("piece", [PAGE, PIECE])
def test_limit(stack, piece):
    """One task writes as much as the limit allows, two users' tasks together do, too; reads count."""
    paths = [cached_file("f"), cached_file("g")]
    limit(LIMIT)
    alone, = together([(NOBODY, paths[0])], piece=piece)
    assert LIMIT / WITHIN < alone < LIMIT * WITHIN
    pair = together([(NOBODY, paths[0]), (SOMEBODY, paths[1])], piece=piece)
    assert LIMIT / WITHIN < sum(pair) < LIMIT * WITHIN
    assert min(pair) > LIMIT / 8
    fd = os.open(paths[0], os.O_RDONLY)

    def read():
        for place in range(0, 2 * LIMIT, piece):
            os.pread(fd, piece, place % SIZE)
    assert 2 / WITHIN < took(read) < 2 * WITHIN
    limit(0)
    free, = together([(NOBODY, paths[0])], seconds=1, piece=piece)
    assert free > 2 * LIMIT, "the machine is too slow for this test"
    os.close(fd)
    assert stack.value("copied_out") == 2 * LIMIT


@BY_THE_CLOCK
def test_limit_of_a_user(stack):
    """Each user has as much, whatever the other does; the tasks of one user share it."""
    paths = [cached_file(name) for name in "fgh"]
    limit(0, LIMIT)
    two = together([(NOBODY, paths[0]), (NOBODY, paths[1]), (SOMEBODY, paths[2])])
    assert LIMIT / WITHIN < two[0] + two[1] < LIMIT * WITHIN
    assert LIMIT / WITHIN < two[2] < LIMIT * WITHIN
    assert stack.value("copied_out") == 0


def in_debt(path):
    """Copies at once what SLOW allows in half a minute; the user's next read or write has to wait for it."""
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b"d" * PAGE, 0)       # the user's first call
    os.pwrite(fd, b"d" * SIZE, 0)
    return fd


def waiting_child(uid, path):
    """A child that waits in a write; ends when the call does."""
    reading, writing = os.pipe()

    def wait():
        fd = in_debt(path)
        os.write(writing, b"!")
        return took(lambda: os.pwrite(fd, b"w", 0))
    child = begin(uid, wait)
    os.close(writing)
    assert os.read(reading, 1) == b"!"
    os.close(reading)
    time.sleep(0.5)
    return child


def kill(child):
    """Returns after how long the child has died of it."""
    os.kill(child[0], signal.SIGKILL)
    seconds = took(lambda: os.waitid(os.P_PID, child[0], os.WEXITED | os.WNOWAIT))
    assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == -signal.SIGKILL
    os.close(child[1])
    return seconds


def test_waiting_task_holds_no_lock(stack):
    """Other users' calls, also on its file, writeback, drain and a rename don't wait for it. It dies of a kill."""
    path = cached_file("f")
    limit(0, SLOW)
    child = waiting_child(NOBODY, path)

    def others():
        fd = os.open(path, os.O_RDWR)
        os.pread(fd, PAGE, 0)
        os.pwrite(fd, b"x", 0)
        os.fsync(fd)
        os.ftruncate(fd, SIZE - PAGE)
        os.close(fd)
        os.rename(path, f"{path}2")
    assert took(others) < 5
    before = stack.value("copied_back")
    assert took(stack.drain) < 5
    assert stack.value("copied_back") > before
    assert not os.waitpid(child[0], os.WNOHANG)[0]      # it waits still
    assert kill(child) < 2
    assert took(stack.umount) < 5
    stack.mount()


def test_waiting_task_goes_on(stack):
    """When a remount lifts the limit."""
    path = cached_file("f")
    limit(0, SLOW)
    child = waiting_child(NOBODY, path)
    limit(0)
    assert 0.5 < value_of(*child) < 10
    assert stack.value("copy_limit_user") == 0


def test_sync_is_acknowledged(stack):
    """A sync call of a user who has copied much too much returns in seconds, and its bytes are in PMem."""
    path, plain = cached_file("f"), cached_file("plain", 0)
    limit(0, SLOW)

    def sync():
        in_debt(path)
        fd = os.open(plain, os.O_RDWR)
        os.pwrite(fd, b"p" * PAGE, 0)
        return took(lambda: os.fsync(fd))
    before = stack.value("pages_absorbed")
    assert 0.9 < as_user(NOBODY, sync) < 4
    assert stack.value("pages_absorbed") == before + 1


def test_debt_of_another_user(stack):
    """Under a limit of all together, a user waits 5 s at most for another one's large write, and that one for all."""
    path = cached_file("f")
    limit(SLOW)
    child = waiting_child(NOBODY, path)

    def read():
        fd = os.open(path, os.O_RDONLY)
        return took(lambda: os.pread(fd, 1, 0))
    assert 1 < as_user(SOMEBODY, read) < 8
    time.sleep(1)
    assert not os.waitpid(child[0], os.WNOHANG)[0]
    assert kill(child) < 2
    assert stack.value("copy_limit") == 1 << 16


def test_pipes(stack):
    """A splice doesn't wait, because its pipe is locked then: another task may use it meanwhile. sendfile() waits."""
    path = cached_file("f")
    limit(0, SLOW)

    def use():
        fd, null = in_debt(path), os.open("/dev/null", os.O_WRONLY)
        reading, writing = os.pipe()
        quick = took(lambda: os.splice(fd, writing, PAGE, offset_src=0))
        quick += took(lambda: os.splice(reading, fd, PAGE, offset_dst=0))
        threading.Timer(2, os.kill, (os.getpid(), signal.SIGKILL)).start()
        os.write(keep[1], b"%f" % quick)
        os.sendfile(null, fd, 0, PAGE)
        os.write(keep[1], b" sent")
    keep = os.pipe()
    child = begin(NOBODY, use)
    os.close(keep[1])
    with os.fdopen(keep[0]) as said:
        assert float(said.read()) < 2       # nothing else
    assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == -signal.SIGKILL
    os.close(child[1])
    assert stack.value("copied_out") >= PAGE


def test_freeze_and_nowait(stack):
    """A call that may not wait doesn't, and a write that waits doesn't hold off a freeze."""
    path = cached_file("f")
    limit(0, SLOW)
    fd = in_debt(path)
    with pytest.raises(BlockingIOError):
        os.preadv(fd, [bytearray(PAGE)], 0, os.RWF_NOWAIT)
    children = [waiting_child(uid, path) for uid in (NOBODY, SOMEBODY)]
    assert took(lambda: run(f"fsfreeze -f {MOUNT}")) < 10
    run(f"fsfreeze -u {MOUNT}")
    limit(0)
    for child in children:
        value_of(*child)
    os.close(fd)
    assert stack.value("copy_limit_user") == 0


BANDWIDTH = 16 * MIB    # of the emulated device: the least that it takes
SLOT = 64 * PAGE        # what a task may write in one turn: so the device's time is much more than all else


@pytest.fixture(name="narrow")
def narrow_fixture(stack):
    """The same over an emulated device with that bandwidth. A task whose copy waits for it spins."""
    stack.umount()
    run("modprobe forebay-emu")
    device = create_emulated(f"--size 64M --bandwidth {BANDWIDTH} --backing {SSD}")
    narrow = Stack(cache=device)
    narrow.mount("allow_volatile_cache")
    yield narrow
    narrow.umount()
    run(f"forebay emu remove {device}")
    stack.mount()


class Crowd:
    """That many writers at once, each with a file: bytes a second in all, CPU time for each, the slowest's share of the
    fastest's rate, and how many of them ran or wanted a CPU on average."""

    def __init__(self, paths):
        children = [begin(NOBODY, lambda path=path: self.write(path)) for path in paths]
        self.runnable = self.watch([pid for pid, _ in children])
        rates, seconds = zip(*(value_of(*child) for child in children))
        self.rate, self.cost, self.share = sum(rates), sum(seconds) / SECONDS / sum(rates), min(rates) / max(rates)

    @staticmethod
    def write(path):
        """In a child: its rate and CPU time."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        rate = write_for(path, SECONDS, SLOT)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return rate, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    @staticmethod
    def watch(pids):
        """Looks 100 times, in the midst of SECONDS."""
        time.sleep(SECONDS / 4)
        found = 0
        for _ in range(100):
            stats = [Path(f"/proc/{pid}/stat").read_text(encoding="ascii") for pid in pids]
            found += sum(stat.rpartition(")")[2].split()[0] == "R" for stat in stats)
            time.sleep(SECONDS / 200)
        return found / 100


@BY_THE_CLOCK
def test_copy_tasks(narrow):
    """Past the device's peak, more tasks take more CPU time for each byte. With a bound they take what one task takes.

    A CPU that the host takes away seems to be in use. So the ratios count only if one task got what the device has.
    """
    paths = [cached_file(name, SLOT) for name in "fghi"]
    peak, past = Crowd(paths[:1]), Crowd(paths)
    run(f"mount -o remount,copy_tasks=1 {MOUNT}")
    bounded = Crowd(paths)
    print(f"one task has {peak.rate / BANDWIDTH:.2f} of the device; CPU time a byte, of that: "
          f"{past.cost / peak.cost:.2f} without a bound, {bounded.cost / peak.cost:.2f} with it; "
          f"bytes {past.rate / peak.rate:.2f} and {bounded.rate / peak.rate:.2f}; "
          f"runnable {past.runnable:.1f} and {bounded.runnable:.1f}; slowest {bounded.share:.2f} of the fastest")
    assert past.runnable > 1.5 > bounded.runnable      # on two CPUs; with the bound, one copies and the others sleep
    assert bounded.share > 0.5
    if peak.rate > 0.8 * BANDWIDTH:
        assert bounded.cost <= 1.2 * peak.cost < past.cost
        assert bounded.rate >= 0.9 * peak.rate
    assert narrow.value("copy_tasks") == 1


def test_copy_tasks_is_an_option(stack):
    """It is changed by a remount, also while tasks copy, and checked."""
    path = cached_file("f")
    assert stack.value("copy_tasks") == 0
    children = [begin(NOBODY, lambda: write_for(path, 4)) for _ in range(4)]
    for tasks in (3, 1, 0, 1024, 2, 5, 0, 1):
        run(f"mount -o remount,copy_tasks={tasks} {MOUNT}")
        assert stack.value("copy_tasks") == tasks
        time.sleep(0.2)
    for child in children:
        assert value_of(*child) > 0
    for wrong in ("-1", "x", "1025"):
        assert "copy_tasks" in fails(f"mount -o remount,copy_tasks={wrong} {MOUNT}")
    run(f"mount -o remount,mode=auto {MOUNT}")
    assert stack.value("copy_tasks") == 1


def test_killed_tasks_leave_no_slot(narrow):
    """Tasks are killed while they copy, and while they wait to. Those that come later copy as before."""
    paths = [cached_file(name, SIZE // 4) for name in "fghi"]
    run(f"mount -o remount,copy_tasks=1 {MOUNT}")
    for number in range(10):
        children = [begin(NOBODY, lambda path=path: write_for(path, 60, SIZE // 8)) for path in paths]
        time.sleep(0.1 + number / 100)
        assert max(map(kill, children)) < 5
    child = begin(NOBODY, lambda: write_for(paths[0], 1))
    time.sleep(6)
    done = bool(os.waitid(os.P_PID, child[0], os.WEXITED | os.WNOHANG | os.WNOWAIT))
    if not done:
        kill(child)
    assert done and value_of(*child) > 0
    assert narrow.value("copy_tasks") == 1


@BY_THE_CLOCK
def test_beside_a_limited_task(narrow):
    """A task keeps its speed beside tasks of another user that are limited, and doesn't beside ones that aren't."""
    paths = [cached_file(name, PIECE) for name in "fgh"]
    flood = [(NOBODY, path) for path in paths[1:]]
    free, = together([(SOMEBODY, paths[0])], piece=4 * PAGE)
    beside_free = together([(SOMEBODY, paths[0]), *flood], piece=4 * PAGE)[0]
    limit(0, MIB)
    alone, = together([(SOMEBODY, paths[0])], piece=4 * PAGE)
    beside = together([(SOMEBODY, paths[0]), *flood], piece=4 * PAGE)[0]
    print(f"{beside_free / free:.2f} of its speed alone without limits, {beside / alone:.2f} with them")
    assert beside_free < 0.7 * free
    assert beside > 0.9 * alone > 0.8 * MIB
    assert narrow.value("copied_in") > 0

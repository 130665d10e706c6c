# SPDX-License-Identifier: GPL-2.0-only
"""The device-mapper targets while the kernel gets no memory: the debug kernel makes allocations fail. Nothing is
lost, nothing crashes, and what failed works again afterwards."""

import collections
import contextlib
import errno
import fcntl
import os
import random
import struct
import time
from pathlib import Path

import pytest
from mapped import noise, verificator
from stack import PAGE, run
from writelog import MIB, STATE, WRITES

NTH = Path("/proc/thread-self/fail-nth")
DEBUGFS = Path("/sys/kernel/debug")
# ioctls of /dev/mapper/control, and its flag for a suspend
DEV_REMOVE, DEV_SUSPEND, TABLE_LOAD, TARGET_MSG, SUSPENDED = 4, 6, 9, 14, 2
MOST = 3000     # allocations in one ioctl
STEP, SECONDS = 3, 30

pytestmark = [pytest.mark.skipif(not NTH.exists(), reason="needs the debug kernel")]


@pytest.fixture(name="knobs", autouse=True)
def knobs_fixture():
    """All kinds of allocations may fail; none does yet."""
    run(f"mountpoint -q {DEBUGFS} || mount -t debugfs none {DEBUGFS}")
    for kind in ("failslab", "fail_page_alloc"):
        (DEBUGFS / kind / "ignore-gfp-wait").write_text("N", encoding="ascii")
        (DEBUGFS / kind / "verbose").write_text("0", encoding="ascii")
    (DEBUGFS / "fail_page_alloc/min-order").write_text("0", encoding="ascii")
    yield
    for kind in ("failslab", "fail_page_alloc"):
        (DEBUGFS / kind / "probability").write_text("0", encoding="ascii")


def control(number, name, flags=0, payload=b"", targets=0):
    """An ioctl of device-mapper, as a generator that stops before the call."""
    size = 312 + len(payload)
    data = struct.pack("=3I I I I i I I I Q 128s 129s 7s", 4, 0, 0, size, 312, targets, 0, flags, 0, 0, 0,
                       name.encode(), b"", b"") + payload
    fd = os.open("/dev/mapper/control", os.O_RDWR)
    try:
        yield
        fcntl.ioctl(fd, 3 << 30 | 312 << 16 | 0xfd << 8 | number, bytearray(data))
    finally:
        os.close(fd)


def failing_at(nth, call):
    """Carries out a call whose nth allocation fails. Returns whether there were so many, and the call's errno."""
    call = iter(call)
    next(call)
    fd = os.open(NTH, os.O_RDWR)
    error = 0
    try:
        os.write(fd, b"%d" % nth)
        try:
            next(call, None)
        except OSError as failure:
            error = failure.errno
        left = int(os.pread(fd, 32, 0))
        if left:
            os.pwrite(fd, b"0", 0)
    finally:
        os.close(fd)
    return not left, error


def many_allocations(call, then):
    """Lets every third allocation of a call fail once, for SECONDS at most, and calls then(errno) after each time.
    The last time none fails, if there is time for that."""
    errors = collections.Counter()
    end = time.monotonic() + SECONDS
    for nth in range(random.randint(1, STEP), MOST, STEP):
        failed, error = failing_at(nth, call())
        then(error)
        if time.monotonic() > end:
            print(f"stopped at allocation {nth}: {errors}")
            return
        if not failed:
            assert error == 0, (nth, error)
            print(f"{nth - 1} allocations: {errors}")
            return
        errors[errno.errorcode.get(error, "none")] += 1
    raise AssertionError("there is no end")


def load_of(target):
    """The ioctl that loads the target's table, to be called again and again."""
    start, length, kind, words = target.table().split(None, 3)
    text = words.encode() + b"\0"
    text += bytes(-len(text) % 8)
    spec = struct.pack("=QQiI16s", int(start), int(length), 0, 40 + len(text), kind.encode())
    return lambda: control(TABLE_LOAD, target.name, 0, spec + text, 1)


def message(target, text):
    """The ioctl that sends a message."""
    return lambda: control(TARGET_MSG, target.name, 0, struct.pack("=Q", 0) + text.encode() + b"\0")


@pytest.fixture(name="target")
def target_fixture(request):
    """A mapped device with data: with a log, or with a transit cache of that policy."""
    if request.param == "log":
        target = request.getfixturevalue("log")
        target.create(high_mark=99, low_mark=98)
    else:
        target = request.getfixturevalue("cache")
        target.create(policy=request.param, cache_size="256K", block_size=PAGE)
    target.write(0, noise(MIB))
    return target


def of(*targets):
    """A test for each of these targets."""
    return pytest.mark.parametrize("target", targets, indirect=True)


@of("log", "coactive")
def test_table_cannot_be_loaded(target):
    """A table that can't be loaded leaves the running one as it is."""
    many_allocations(load_of(target), lambda error: run(f"dmsetup clear {target.name}"))
    assert target.read(0, MIB) == noise(MIB)
    target.again()
    assert target.read(0, MIB) == noise(MIB)


@of("log", "coactive")
def test_table_cannot_be_resumed(target):
    """A resume that failed is repeated, and finds what was written."""
    def then(error):
        if error:
            run(f"dmsetup resume {target.name}")
        else:
            assert target.read(0, 65536) == noise(MIB)[:65536]
        run(f"dmsetup suspend {target.name}; dmsetup load {target.name} --table '{target.table()}'")

    then(errno.ENOMEM)
    many_allocations(lambda: control(DEV_SUSPEND, target.name), then)
    run(f"dmsetup resume {target.name}")
    assert target.read(0, MIB) == noise(MIB)


@of("log", "coactive")
def test_suspend_flush_and_remove(target):
    """These need memory, too, and can be repeated."""
    def after_suspend(error):
        del error
        run(f"dmsetup resume {target.name}")

    def after_flush(error):
        del error
        target.write(0, noise(65536))

    many_allocations(lambda: control(DEV_SUSPEND, target.name, SUSPENDED), after_suspend)
    many_allocations(message(target, "flush"), after_flush)

    def after_remove(error):
        if error:
            target.remove()
        target.create()

    many_allocations(lambda: control(DEV_REMOVE, target.name), after_remove)
    assert target.read(0, MIB) == noise(MIB)


@contextlib.contextmanager
def short_of_memory(module, percent):
    """Allocations of all that this module calls fail so often."""
    sections = Path("/sys/module") / module / "sections"
    start = int((sections / ".text").read_text(encoding="ascii"), 16)
    size = next(int(line.split()[1]) for line in Path("/proc/modules").read_text(encoding="ascii").splitlines()
                if line.split()[0] == module)
    for kind in ("failslab", "fail_page_alloc"):
        for knob, value in {"require-start": hex(start), "require-end": hex(start + size), "stacktrace-depth": 32,
                            "times": -1, "interval": 1, "probability": percent}.items():
            (DEBUGFS / kind / knob).write_text(f"{value}\n", encoding="ascii")
    try:
        yield
    finally:
        for kind in ("failslab", "fail_page_alloc"):
            (DEBUGFS / kind / "probability").write_text("0", encoding="ascii")


@of("log", "transit", "coactive")
@pytest.mark.parametrize("percent", [10, 100])
def test_writers_without_memory(target, percent):
    """Writes, reads, flushes and discards of a target that gets no memory, or seldom, have no errors."""
    with short_of_memory(target.module.replace("-", "_"), percent):
        verificator(f"run {target.device} {8 * MIB} 9 {WRITES} 4 2 4096 131072 {STATE}")
        target.message("flush")
    verificator(f"check {target.device} {STATE}")
    target.remove()
    target.create()
    verificator(f"check {target.device} {STATE}")

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog over a log that the medium has damaged, or that a program tries to damage."""

import ctypes
import json
import mmap
import multiprocessing
import os
import time

import pytest
from mapped import Device, noise
from stack import SSD, run
from writelog import DEVICE, MIB

pytestmark = pytest.mark.persistence

TABLE, LINE = 8192, 64      # where the table of generations is; a generation's line in it


def line_of(log, generation):
    """A generation's line. The log is not in use."""
    at = TABLE + generation * LINE
    return log.read(at // 512 * 512, 512, device=log.cache)[at % 512:at % 512 + LINE]


def spoil_line(log, generation, line):
    """Has the medium show another line for a generation. The log is not in use."""
    with Device(log.cache) as fd:
        os.pwrite(fd, line, TABLE + generation * LINE)
        os.fsync(fd)
    assert line_of(log, generation) == line


def findings(log):
    """What is wrong with a log."""
    return json.loads(run(f"forebay writelog check --json {log.cache} 2>/dev/null", check=False))["findings"]


def test_word_of_an_earlier_life(log):
    """The medium has lost a generation's word, and shows that of an earlier life. With on_damage skip the
    entries of either life are left out, and the generation keeps no newer one in the log. It is used again."""
    log.format("--generations", "4", "--chunk-size", "65536")
    log.create(on_damage="skip")
    log.write(0, noise(MIB))
    log.remove()
    earlier = line_of(log, 0)
    log.create()
    log.message("flush")
    for _ in range(3):
        log.write(MIB, noise(4096))
        log.message("flush")
    log.write(0, noise(4096, 2))
    log.again()
    log.write(8 * MIB, noise(4096, 3))
    log.remove()
    assert not findings(log) and line_of(log, 0) != earlier
    spoil_line(log, 0, earlier)
    assert [found["what"] for found in findings(log)] == ["generation"]
    log.create()
    assert log.read(8 * MIB, 4096) == noise(4096, 3)
    log.message("flush")
    status = log.status()
    assert (status["health"], status["used"], status["medium_errors"]) == ("ok", 0, 1), status
    assert log.read(8 * MIB, 4096, device=SSD) == noise(4096, 3)
    assert log.read(0, MIB) == noise(MIB)
    for number in range(4):
        log.write(0, noise(MIB, number))
        log.message("flush")
    log.write(0, noise(4096, 5))
    log.remove()
    assert not findings(log)
    log.create()
    assert log.read(0, MIB) == noise(4096, 5) + noise(MIB, 3)[4096:]


def change_for_ever(buffer):
    """Changes a buffer that another process writes."""
    word = ctypes.c_uint64.from_buffer(buffer)
    while True:
        word.value += 1


def test_program_changes_its_buffer(log):
    """A program changes its buffer during direct writes. With checksums of data no write looks damaged."""
    log.format("--data-checksums").create(high_mark=99, low_mark=98)
    buffer = mmap.mmap(-1, 4096)
    buffer[:] = noise(4096)
    changer = multiprocessing.Process(target=change_for_ever, args=(buffer,))
    changer.start()
    fd = os.open(DEVICE, os.O_RDWR | os.O_DIRECT)
    try:
        while buffer[:8] == noise(8):       # a process may take longer to start than all writes take
            time.sleep(0.01)
        for block in range(1000):
            os.pwrite(fd, buffer, block * 4096)
    finally:
        os.close(fd)
        changer.kill()
        changer.join()
    log.remove()
    assert not findings(log)
    log.create()
    assert log.read(0, 4096)[8:] == noise(4096)[8:]
    assert len({log.read(block * 4096, 4096)[:8] for block in range(0, 1000, 10)}) > 1, "the buffer has not changed"

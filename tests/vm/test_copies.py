# SPDX-License-Identifier: GPL-2.0-only
"""What is counted of copies to and from persistent memory, and how they are limited."""

import mmap
import os
import re
from pathlib import Path

from other_user import as_nobody
from stack import MOUNT, PAGE, run

MIB, PIECE = 1 << 20, 1 << 16
SIZE = 2 * MIB          # of a file, all of it in PMem
TRACING = Path("/sys/kernel/tracing")
COUNTS = ("copied_in", "copied_out", "copied_back", "mapped_stores")


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


def test_counts_are_for_root(stack):
    """Another user learns nothing, and `forebay status` and `forebay metrics` leave it out."""
    cached_file("f", PIECE)

    def look():
        seen = []
        for name in COUNTS:
            try:
                seen.append((stack.sysfs / name).read_text())
            except PermissionError:
                pass
        return seen, "copied" in run(f"forebay status {MOUNT}"), "copied" in run("forebay metrics")
    assert as_nobody(look) == [[], False, False]
    assert len(look()[0]) == len(COUNTS) and look()[1:] == (True, True)

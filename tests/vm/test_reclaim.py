# SPDX-License-Identifier: GPL-2.0-only
"""Memory is short beside mapped files that have pages in PMem: reclaim looks at their page tables."""

import os
import re
from pathlib import Path

import pytest
from libc import (MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, PROT_READ, PROT_WRITE, Mapping,
                  pages)
from stack import LOWER, MOUNT, PAGE, drop_caches

GROUP = Path("/sys/fs/cgroup/short")
SIZE, OTHER_SIZE = 8 << 20, 64 << 20
EVERY = 8                   # one page in so many is in PMem
ROUNDS = 6
PROT_EXEC = 4
DAX = MAP_SHARED_VALIDATE | MAP_SYNC


@pytest.fixture(name="short", scope="module")
def short_fixture():
    """A cgroup whose tasks have less memory than the files that they read."""
    Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+memory", encoding="ascii")
    GROUP.mkdir()
    (GROUP / "memory.max").write_text(str(24 << 20), encoding="ascii")
    yield GROUP
    GROUP.rmdir()


@pytest.fixture(name="fd", scope="module")
def fd_fixture(shared):
    """A file, some of whose pages are in PMem, and a file on the lower file system that fills the memory."""
    del shared
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"v" * SIZE, 0)
    (LOWER / "other").write_bytes(b"o" * OTHER_SIZE)
    os.sync()
    with Mapping(fd, SIZE, DAX) as mapping:
        for at in range(0, SIZE, EVERY * PAGE):
            mapping.write(at, b"d")
    os.fsync(fd)
    yield fd
    os.close(fd)


def reclaim(fd, flags, prot, lock):
    """Maps the file and uses all of it, time and again, while the other file needs the memory."""
    other = os.open(LOWER / "other", os.O_RDONLY)
    filler = Mapping(other, OTHER_SIZE, MAP_SHARED, PROT_READ)
    with filler, Mapping(fd, SIZE, flags, prot) as mapping:
        if lock:
            mapping.lock()
            mapping.unlock()
        for _ in range(ROUNDS):
            for at in range(0, OTHER_SIZE, PAGE):
                filler.read(at, 1)
                assert mapping.read(at % SIZE, 1) == (b"v" if at % (EVERY * PAGE) else b"d")
    os.close(other)


@pytest.mark.parametrize("flags,prot,lock", [
    pytest.param(MAP_SHARED, PROT_READ | PROT_WRITE, False, id="shared"),
    pytest.param(MAP_PRIVATE, PROT_READ | PROT_WRITE, False, id="private"),
    pytest.param(MAP_SHARED, PROT_READ | PROT_EXEC, False, id="executable"),
    pytest.param(MAP_SHARED, PROT_READ | PROT_WRITE, True, id="locked"),
    pytest.param(DAX, PROT_READ | PROT_WRITE, False, id="dax"),
    pytest.param(DAX, PROT_READ | PROT_WRITE, True, id="dax_locked"),
])
def test_short_memory(short, fd, flags, prot, lock):
    """The kernel warns of nothing (Linux 6.12, get_pte_pfn()), also not when the task ends."""
    assert SIZE // PAGE // EVERY <= pages(fd)
    drop_caches()           # memory counts for the cgroup whose task brings a page in
    Path("/sys/kernel/debug/clear_warn_once").write_text("1", encoding="ascii")
    with open("/dev/kmsg", "rb", buffering=0) as log:
        os.set_blocking(log.fileno(), False)
        os.lseek(log.fileno(), 0, os.SEEK_END)
        pid = os.fork()
        if not pid:
            try:
                (short / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
                reclaim(fd, flags, prot, lock)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        said = ""
        while record := log.read(8192):
            said += record.decode(errors="replace")
    stat = (short / "memory.stat").read_text(encoding="ascii")
    assert int(re.search(r"workingset_refault_file (\d+)", stat)[1]) > 1000
    assert "WARNING" not in said and "BUG" not in said, said

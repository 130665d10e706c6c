# SPDX-License-Identifier: GPL-2.0-only
"""A cache with a name log: when changes of names need no commit of the lower journal (test_names_log.py has more)."""

import mmap
import os
import time
from pathlib import Path

import pytest
from stack import LOWER, MOUNT, PAGE, read_mapped
from test_names_log import BOTH, counters, sync, sync_all, write

TRIMMED = 13            # seconds: ten after the first record, the worker empties the log
PATIENCE = 60           # for the same on a busy host


def replace(top):
    """Replacement without a sync call for the new file."""
    write(top / "f.new", b"new" * 10000, synced=False)
    os.rename(top / "f.new", top / "f")
    sync(top)
    return b"new" * 10000


def replace_mapped(top):
    """The same with a file that is mapped, and was synced in part."""
    with open(top / "f.new", "w+b") as file:
        file.write(bytes(PAGE))
        file.flush()
        os.fdatasync(file.fileno())
        file.write(bytes(3 * PAGE))
        file.flush()
        with mmap.mmap(file.fileno(), 4 * PAGE) as mapping:
            mapping[:] = b"m" * 4 * PAGE
            os.rename(top / "f.new", top / "f")
            sync(top)
    return b"m" * 4 * PAGE


@BOTH
@pytest.mark.parametrize("program, syncs", ((replace, 1), (replace_mapped, 2)))
def test_small_file_that_replaces_another(stack, program, syncs):
    """A sync call that owes the new name finds the data in PMem."""
    write(MOUNT / "f", b"old" * 1000)
    sync(MOUNT)
    sync_all()
    absorbed, below, barriers, off = counters(stack)
    data = program(MOUNT)
    assert counters(stack) == [absorbed + syncs, below, barriers, off]
    assert read_mapped(MOUNT / "f") == data and not (MOUNT / "f.new").exists()
    stack.umount()
    assert read_mapped(LOWER / "f") == data and not (LOWER / "f.new").exists()


@pytest.mark.parametrize("stack", [{"names": "1M", "lower_options": "commit=900"}], indirect=True)
def test_empty_log_asks_for_no_commit(stack):
    """What a syncfs has emptied needs no commit of the lower journal any more. What comes later does."""
    info = Path(f"/proc/fs/jbd2/{os.path.basename(stack.device)}-8/info")
    os.mkdir(MOUNT / "d")
    sync(MOUNT)
    sync_all()
    assert stack.value("names_used") == 0
    before = info.read_text(encoding="ascii").split()[0]
    time.sleep(TRIMMED)
    assert info.read_text(encoding="ascii").split()[0] == before
    os.mkdir(MOUNT / "d/e")
    sync(MOUNT)
    end = time.monotonic() + PATIENCE
    while stack.value("names_used") and time.monotonic() < end:
        time.sleep(0.5)
    assert stack.value("names_used") == 0 and info.read_text(encoding="ascii").split()[0] != before

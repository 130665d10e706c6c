# SPDX-License-Identifier: GPL-2.0-only
"""A file takes the place of another one, and a power cut comes right after a call (names_pair.py): what was synced of the other
isn't lost for something that nothing has synced."""

import os
import stat
from pathlib import Path

import pytest
from names_pair import pair_fixture, settle, sync, write
from stack import LOWER, MOUNT, PAGE
from test_emu import module_fixture

emulated_devices = module_fixture
two_file_systems = pair_fixture


def replace_and_sync():
    """By a sync call that says nothing of the new file's data."""
    os.rename(MOUNT / "f.new", MOUNT / "f")
    sync(MOUNT)


def test_replaced_file(pair):
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 2000)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"old" * 1000 and (left / "f.new").read_bytes() == b"new" * 2000
    os.rename(MOUNT / "f.new", MOUNT / "f")
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() in (b"old" * 1000, b"new" * 2000)
    sync(MOUNT)
    for left in pair.after_cuts(committed=False):       # the old file's end has taken the change to storage meanwhile
        assert (left / "f").read_bytes() == b"new" * 2000 and not (left / "f.new").exists()


def test_replaced_by_what_was_not_synced(pair):
    """The rename is made durable by another call: then it must not lead to a file without its data."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 2000, synced=False)
    replace_and_sync()
    for left in pair.after_cuts(committed=False):       # such a rename is made durable below
        assert (left / "f").read_bytes() == b"new" * 2000


def test_attributes_of_a_replaced_file(pair):
    """A file that loses a name to another one, and has a second name, keeps the attributes that were synced."""
    write(MOUNT / "f", b"f")
    os.link(MOUNT / "f", MOUNT / "other")
    settle()
    os.chmod(MOUNT / "f", 0o604)
    sync(MOUNT / "f")
    write(MOUNT / "f.new", b"new")
    os.rename(MOUNT / "f.new", MOUNT / "f")
    sync(MOUNT)
    for left in pair.after_cuts():
        status = os.stat(left / "other")
        assert (stat.S_IMODE(status.st_mode), status.st_nlink) == (0o604, 1)
        assert (left / "f").read_bytes() == b"new" and (left / "other").read_bytes() == b"f"


@pytest.mark.parametrize("size", (0, 1000, 3 * PAGE))
@pytest.mark.parametrize("known", (True, False), ids=("known", "new"))
def test_replaced_by_what_was_truncated(pair, size, known):
    """Storage has the new file's data, with or without a call that has promised it; only the truncation isn't there."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"n" * 2 * PAGE, synced=False)
    sync((MOUNT if known else LOWER) / "f.new")
    sync(LOWER / "f.new")
    os.truncate(MOUNT / "f.new", size)
    replace_and_sync()
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == (b"n" * min(size, 2 * PAGE)).ljust(size, b"\0")


def test_replaced_by_what_was_forgotten(pair):
    """The inode was given up between the write and the rename."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 2000, synced=False)
    Path("/proc/sys/vm/drop_caches").write_text("2", encoding="ascii")
    replace_and_sync()
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == b"new" * 2000

# SPDX-License-Identifier: GPL-2.0-only
"""A file takes the place of another one, and a power cut comes right after a call (names_pair.py): what was synced of the other
isn't lost for something that nothing has synced."""

import mmap
import os
import stat
from pathlib import Path

import pytest
from names_pair import BOTH, pair_fixture, settle, sync, write
from stack import LOWER, MOUNT, PAGE, counter, run
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


def barriers(pair):
    """How many changes have made commits wait for storage."""
    return counter(pair.cache, "names_barriers")


@BOTH
@pytest.mark.parametrize("begun", (False, True), ids=("new", "begun"))
def test_replaced_by_a_small_file(pair, begun):
    """The rename is made durable by another call: then it must not lead to a file without its data, also on xfs, which doesn't
    write them first by itself. What is small moves into PMem before, and the sync call has nothing to wait for. Also if the
    file was synced before, and has grown since."""
    write(MOUNT / "f", b"old" * 1000)
    if begun:
        write(MOUNT / "f.new", b"begun" * 1000)
    settle()
    before = barriers(pair)
    write(MOUNT / "f.new", b"new" * 20000, synced=False)
    replace_and_sync()
    assert barriers(pair) == before and counter(pair.cache, "names_used") > 0     # the lower journal has had no commit
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"new" * 20000 and not (left / "f.new").exists()


@BOTH
def test_small_file_whose_rename_storage_has(pair):
    """The file system below makes the rename durable by itself, without the data."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 20000, synced=False)
    os.rename(MOUNT / "f.new", MOUNT / "f")
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() in (b"old" * 1000, b"new" * 20000)
    sync(LOWER)
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == b"new" * 20000


@BOTH
def test_replaced_by_a_large_file(pair):
    """Its data go below, and the sync call, too."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    before = barriers(pair)
    write(MOUNT / "f.new", b"new" * (1 << 19), synced=False)
    replace_and_sync()
    assert barriers(pair) == before + 1
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == b"new" * (1 << 19) and not (left / "f.new").exists()


@BOTH
@pytest.mark.parametrize("mapped", (False, True), ids=("unmapped", "mapped"))
def test_replaced_by_what_was_stored_through_a_mapping(pair, mapped):
    """While pages of such a device are mapped, they don't move: then the sync call goes below."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    before = barriers(pair)
    with open(MOUNT / "f.new", "w+b") as file:
        file.truncate(2 * PAGE)
        mapping = mmap.mmap(file.fileno(), 2 * PAGE)
    mapping[:] = b"m" * 2 * PAGE
    if not mapped:
        mapping.close()
    replace_and_sync()
    assert barriers(pair) == before + 1 or not mapped
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == b"m" * 2 * PAGE
    mapping.close()


def test_replaced_while_sync_calls_go_below(pair):
    """With mode=explicit nothing moves unasked."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    run(f"mount -o remount,mode=explicit {MOUNT}")
    before, absorbed = barriers(pair), counter(pair.cache, "pages_absorbed")
    write(MOUNT / "f.new", b"new" * 2000, synced=False)
    replace_and_sync()
    assert (barriers(pair), counter(pair.cache, "pages_absorbed")) == (before + 1, absorbed)
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == b"new" * 2000


def test_replaced_by_a_user_who_may_not_write(pair):
    """Such a user may rename the file, and decides nothing about its pages."""
    os.mkdir(MOUNT / "d")
    os.chmod(MOUNT / "d", 0o777)
    write(MOUNT / "d/f", b"old" * 1000)
    settle()
    before, absorbed = barriers(pair), counter(pair.cache, "pages_absorbed")
    write(MOUNT / "d/f.new", b"new" * 2000, synced=False)
    run(f"setpriv --reuid 65534 --clear-groups mv -f {MOUNT}/d/f.new {MOUNT}/d/f")
    sync(MOUNT / "d")
    assert (barriers(pair), counter(pair.cache, "pages_absorbed")) == (before + 1, absorbed)
    for left in pair.after_cuts(committed=False):
        assert (left / "d/f").read_bytes() == b"new" * 2000


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


@BOTH
@pytest.mark.parametrize("grows", (False, True), ids=("shorter", "longer"))
def test_replaced_by_what_was_truncated_and_synced(pair, grows):
    """PMem has the truncation: a program that writes one file again and again, and puts it in the place of another."""
    write(MOUNT / "f", b"old" * 1000)
    write(MOUNT / "f.new", b"n" * 2 * PAGE)
    write(MOUNT / "f.new", b"m" * 2 * PAGE)
    settle()
    write(MOUNT / "f.new", b"o" * 2 * PAGE)
    new = b"p" * (3 * PAGE if grows else 1000)
    fd = os.open(MOUNT / "f.new", os.O_WRONLY | os.O_TRUNC)
    os.write(fd, new)
    os.fsync(fd)
    os.close(fd)
    before = barriers(pair)
    assert pair.says_exactly()
    replace_and_sync()
    assert barriers(pair) == before
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == new and not (left / "f.new").exists()


def test_replaced_by_what_was_forgotten(pair):
    """The inode was given up between the write and the rename."""
    write(MOUNT / "f", b"old" * 1000)
    settle()
    write(MOUNT / "f.new", b"new" * 2000, synced=False)
    Path("/proc/sys/vm/drop_caches").write_text("2", encoding="ascii")
    replace_and_sync()
    for left in pair.after_cuts(committed=False):
        assert (left / "f").read_bytes() == b"new" * 2000

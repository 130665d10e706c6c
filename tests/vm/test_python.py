# SPDX-License-Identifier: GPL-2.0-only
"""libforebay's Python module on forebay, and docs/python.md as it is printed there. tests/lib tests the
module on other file systems."""

import doctest
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from other_user import as_nobody
from stack import LOWER, MOUNT, PAGE, run

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "build/lib/python"
sys.path.insert(0, str(MODULE))

import forebay  # noqa: E402  pylint: disable=wrong-import-position
from forebay import Attributes  # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture(name="file")
def file_fixture(folder):
    """A settled file of 16 pages, opened to read and write."""
    with open(folder / "f", "w+b", buffering=0) as file:
        file.write(b"x" * 16 * PAGE)
        os.fsync(file)
        yield file


def failure(action, *arguments, **more):
    """The errno of an action that must fail, with an error that names the file."""
    with pytest.raises(OSError) as caught:
        action(*arguments, **more)
    assert caught.value.filename == getattr(arguments[0], "name", arguments[0])
    return caught.value.errno


def test_mapping(file, below):
    """Other readers see stores, which are durable after a sync. Counts and attributes follow, those of
    the range alone."""
    assert forebay.range_info(file) == (0, 16 * PAGE, 0, 0, 0, 0, 0, 0, 16, 0)
    with forebay.mmap(file, 4 * PAGE, 8 * PAGE) as view:
        assert len(view) == 4 * PAGE and not view.readonly and bytes(view[:4]) == b"xxxx"
        assert forebay.range_info(file).attributes is Attributes.MAPPED
        assert forebay.range_info(file, 0, 8 * PAGE).attributes == 0 == forebay.range_info(file, 12 * PAGE).attributes
        first = forebay.range_info(file, 8 * PAGE, run=True)
        assert (first.offset, first.length) == (8 * PAGE, 4 * PAGE)
        view[PAGE:PAGE + 6] = b"stored"
        assert os.pread(file.fileno(), 6, 9 * PAGE) == b"stored"
        assert forebay.range_info(file).dirty == 1
        os.fdatasync(file)
        info = forebay.range_info(file)
        assert (info.dirty, info.out_of_sync) == (0, 1)
    assert forebay.range_info(file).attributes == 0
    with pytest.raises(ValueError):
        view[0] = 0
    there = info.clean + info.out_of_sync
    assert forebay.drop(file) == forebay.Dropped(there, 0, 0) and there >= 1
    info = forebay.range_info(file)
    assert info.clean == info.out_of_sync == 0
    assert (below / "f").read_bytes()[9 * PAGE:9 * PAGE + 6] == b"stored"


def test_views(file):
    """A view made of a mapping keeps the mapping alive, and nothing else does. A file opened to read
    can't be stored to."""
    view = forebay.mmap(file, 4 * PAGE)
    part = view[PAGE:2 * PAGE]
    view.release()
    del view
    part[:4] = b"kept"
    assert os.pread(file.fileno(), 4, PAGE) == b"kept" and forebay.range_info(file).attributes is Attributes.MAPPED
    del part
    assert forebay.range_info(file).attributes == 0
    with open(file.name, "rb") as reading:
        assert failure(forebay.mmap, reading, PAGE) == errno.EACCES
        with forebay.mmap(reading, PAGE, PAGE, writable=False) as view:
            assert view.readonly and bytes(view[:4]) == b"kept"
            with pytest.raises(TypeError):
                view[0] = 0
            assert forebay.range_info(file).attributes is Attributes.MAPPED
    assert forebay.range_info(file).attributes == 0


def test_left_open(file):
    """A program that ends with a mapping open ends without a message, and its store is there."""
    program = f"import forebay; view = forebay.mmap(open({file.name!r}, 'r+b'), {PAGE}); view[:4] = b'left'"
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(MODULE)}, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert not done.stdout and os.pread(file.fileno(), 4, 0) == b"left"
    assert forebay.range_info(file).attributes == 0


def test_pins(file):
    """Pinned pages come, are counted, and stay when the rest is dropped; unpinned they go."""
    forebay.pin(file, 2 * PAGE, 4 * PAGE)
    assert forebay.range_info(file) == (0, 16 * PAGE, Attributes.PINNED, 4, 0, 0, 4, 0, 12, 0)
    with forebay.mmap(file, 16 * PAGE) as view:
        view[10 * PAGE] = 1
        assert forebay.range_info(file).attributes == Attributes.PINNED | Attributes.MAPPED
        assert "PINNED" in repr(forebay.range_info(file)) and "MAPPED" in repr(forebay.range_info(file))
    assert forebay.drop(file) == (12, 4, 0)
    forebay.unpin(file, 2 * PAGE, PAGE)
    assert forebay.range_info(file).pinned == 3
    forebay.unpin(file)
    assert forebay.drop(file.fileno(), 0, 4 * PAGE) == (2, 0, 0) and forebay.drop(file) == (2, 0, 0)


def test_attached(file):
    """Writes go to PMem until the range is detached."""
    forebay.attach(file, 4 * PAGE, 4 * PAGE)
    assert forebay.range_info(file, 4 * PAGE, 4 * PAGE).attributes is Attributes.ATTACHED
    assert forebay.range_info(file, 0, 4 * PAGE).attributes == 0 == forebay.range_info(file, 8 * PAGE).attributes
    os.pwrite(file.fileno(), b"y" * PAGE, 4 * PAGE)
    os.fdatasync(file)
    assert forebay.range_info(file, 4 * PAGE, 4 * PAGE).out_of_sync == 1
    forebay.detach(file, 5 * PAGE, 2 * PAGE)
    assert [bool(forebay.range_info(file, page * PAGE, PAGE).attributes) for page in range(3, 9)] == [0, 1, 0, 0, 1, 0]
    forebay.detach(file)
    assert forebay.range_info(file).attributes == 0


@pytest.mark.parametrize("do, undo", [(forebay.pin, forebay.unpin), (forebay.attach, forebay.detach)], ids=["pin", "attach"])
def test_kept(file, do, undo):
    """What is kept belongs to the file and outlives its opener; only the administrator may keep a range."""
    assert as_nobody(lambda: failure(do, file, 0, PAGE, keep=True)) == errno.EPERM
    with open(file.name, "r+b") as opener:
        do(opener, 0, 2 * PAGE)
        do(opener, 0, PAGE, keep=True)
    undo(file)
    assert forebay.range_info(file, 0, PAGE).attributes and not forebay.range_info(file, PAGE).attributes
    undo(file, keep=True)
    assert not forebay.range_info(file).attributes


def test_limits(file):
    """Over a limit a pin fails with ENOMEM, and no page is pinned."""
    run(f"mount -o remount,pin_limit={10 * PAGE} {MOUNT}")
    try:
        assert failure(forebay.pin, file, 0, 11 * PAGE) == errno.ENOMEM
        assert forebay.range_info(file).pinned == 0
        forebay.pin(file, 0, 10 * PAGE)
        assert failure(forebay.pin, file, 10 * PAGE, 1) == errno.ENOMEM
        assert forebay.range_info(file).pinned == 10
        assert failure(forebay.pin, file, 16 * PAGE) == errno.EINVAL
    finally:
        run(f"mount -o remount,pin_limit=16M {MOUNT}")


def test_below(file, below):
    """The same file, opened on the lower file system, is not on forebay."""
    assert LOWER in below.parents
    with open(below / "f", "r+b") as lower:
        assert failure(forebay.pin, lower) == errno.ENOTTY and failure(forebay.mmap, lower, PAGE) == errno.EOPNOTSUPP
    assert forebay.range_info(file).pinned == 0


def test_document(folder):
    """docs/python.md, with a folder of ours for /srv/db: each line typed prints what stands there."""
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8").replace("/srv/db", str(folder))
    example = doctest.DocTestParser().get_doctest(text, {}, "python.md", "docs/python.md", 0)
    assert len(example.examples) > 12
    said = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)

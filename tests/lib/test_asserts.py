# SPDX-License-Identifier: GPL-2.0-only
"""scripts/asserts: it is content with the tree, and names a function that says a lock is held and asserts none."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ASSERTED = """/**
 * fb_first() - the first page
 * @fi: the inode; io_sem is held, in either way
 */
static int fb_first(struct fb_inode *fi)
{
	lockdep_assert_held(&fi->io_sem);
	return 0;
}
"""


def asserts(root):
    done = subprocess.run([ROOT / "scripts/asserts", root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.fixture(name="source")
def source_fixture(tmp_path):
    """A tree of one file."""
    (tmp_path / "fs").mkdir()
    return tmp_path / "fs/one.c"


def test_tree():
    assert asserts(ROOT) == (0, [])


def test_asserted(source):
    source.write_text(ASSERTED, encoding="utf-8")
    assert asserts(source.parents[1]) == (0, [])


@pytest.mark.parametrize("prose", ["@fi: the inode; io_sem is held, in either way", "Context: process, under wb_lock. Sleeps.",
                                   "Context: Under the set's lock.", "The caller holds the inode's lock."])
def test_prose(source, prose):
    text = ASSERTED.replace("	lockdep_assert_held(&fi->io_sem);\n", "").replace("@fi: the inode; io_sem is held, in either way", prose)
    source.write_text(text, encoding="utf-8")
    assert asserts(source.parents[1]) == (1, ["fs/one.c:5: fb_first() says that a lock is held, and asserts none"])


def test_a_way_out_cannot_be_asserted(source):
    text = ASSERTED.replace("in either way", "or no other task has the inode").replace("	lockdep_assert_held(&fi->io_sem);\n", "")
    source.write_text(ASSERTED + text.replace("fb_first", "fb_second"), encoding="utf-8")
    assert asserts(source.parents[1]) == (0, [])


def test_nothing_found(tmp_path):
    """A check that looks at nothing is no check."""
    assert asserts(tmp_path)[0] == 1

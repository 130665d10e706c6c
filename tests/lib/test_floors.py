# SPDX-License-Identifier: GPL-2.0-only
"""scripts/floors: the tree as it is has one direction, and each kind of wrong arrow is noticed and named."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("compat", "core", "fs", "dm", "emu", "include")


def floors(root):
    """What the script says of a tree: its exit status and its lines."""
    done = subprocess.run([ROOT / "scripts/floors", root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    """A copy of the modules' sources."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def include(tree, path, name):
    """Puts an #include before the first line of a file."""
    text = (tree / path).read_text(encoding="utf-8")
    (tree / path).write_text(f'#include "{name}"\n{text}', encoding="utf-8")


def test_tree():
    assert floors(ROOT) == (0, [])


def test_upward(tree):
    include(tree, "fs/page/index.c", "../sync/sync.h")
    assert floors(tree) == (1, ["fs/page/index.c:1: includes fs/sync/sync.h, which stands above or in another house"])


def test_other_house(tree):
    include(tree, "core/store/page.c", "../fs/forebay.h")
    status, lines = floors(tree)
    assert status == 1
    assert lines[0] == "core/store/page.c:1: includes fs/forebay.h, which stands above or in another house"


def test_missing(tree):
    include(tree, "fs/fail.c", "nowhere.h")
    assert floors(tree) == (1, ['fs/fail.c:1: includes "nowhere.h", which is not found'])


def test_circle(tree):
    include(tree, "fs/page/mapping.c", "index.h")
    status, lines = floors(tree)
    assert status == 1
    assert len(lines) == 1
    assert "a circle: " in lines[0] and "fs/page/mapping -> fs/page/index" in lines[0]


def test_wrong_header(tree):
    header = tree / "fs/forebay.h"
    header.write_text(header.read_text(encoding="utf-8") + "int fb_drain(struct fb_sb *fsb);\n", encoding="utf-8")
    status, lines = floors(tree)
    assert status == 1
    assert lines[0].endswith("declares fb_drain(), which fs/vfs/drain.c defines: that belongs in fs/vfs/drain.h")


def test_needless_exception(tree):
    path = tree / "fs/vfs/inode.c"
    path.write_text(path.read_text(encoding="utf-8").replace('#include "namei.h"\n', ""), encoding="utf-8")
    assert floors(tree) == (1, ["fs/vfs/inode.c: doesn't include fs/vfs/namei.h: the exception can go"])

# SPDX-License-Identifier: GPL-2.0-only
"""The comparison after unmount, and the call of a program, on the host: they must be able to fail."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lower                                # noqa: E402
import tree                                 # noqa: E402
from place import Failure, call, expect     # noqa: E402


def write(path, offset, data):
    with open(path, "r+b") as stream:
        stream.seek(offset)
        stream.write(data)


def keep_time(action):
    def act(path):
        info = os.stat(path)
        action(path)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    return act


CHANGES = {
    "sha256": keep_time(lambda path: write(path, 5000, b"!")),
    "size": keep_time(lambda path: os.truncate(path, 9999)),
    "mtime": lambda path: os.utime(path, ns=(0, 1)),
    "mode": lambda path: os.chmod(path, 0o4600),
    "xattrs": lambda path: os.setxattr(path, "user.x", b"other"),
    "links": lambda path: os.link(path, path.with_name("more")),
    "gone": os.unlink,
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen(tmp_path, what):
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "file"
    file.write_bytes(b"x" * 10000)
    os.setxattr(file, "user.x", b"value")
    before = tree.describe(tmp_path)
    assert not tree.differences(before, tree.describe(tmp_path))
    CHANGES[what](file)
    assert any(line.startswith("folder/file:") and what in line for line in tree.differences(before, tree.describe(tmp_path)))
    shutil.rmtree(folder)


def test_on_btrfs_a_file_may_be_later_and_not_earlier(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    before = tree.describe(tmp_path)
    for change, lines in ((10 ** 9, 0), (-10 ** 9, 1)):
        time = before["file"]["mtime"] + change
        os.utime(tmp_path / "file", ns=(time, time))
        after = tree.describe(tmp_path)
        assert len(tree.differences(before, after)) == 1
        lower.allow_later_times(before, after)
        assert len(tree.differences(before, after)) == lines


def test_a_failed_program_is_quoted():
    with pytest.raises(Failure, match="(?s)status 3.*why it failed"):
        call("sh", "-c", "echo why it failed; exit 3")
    with pytest.raises(Failure, match="(?s)not done after 1 s.*so far"):
        call("sh", "-c", "echo so far; exec sleep 60", timeout=1)
    assert call("sh", "-c", "exit 3", ok=(3,)) == ""
    with pytest.raises(Failure, match="because"):
        expect(False, "because")

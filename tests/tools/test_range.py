# SPDX-License-Identifier: GPL-2.0-only
"""forebay pin, drop, emu create and their like on the host: tests/vm has what they do."""

import errno
import os
import pty
import re
import subprocess

import pytest

from conftest import DONE, FAILED, LEFT, build_library


@pytest.fixture(scope="session", name="slow")
def slow_fixture():
    """An environment in which a call of the kernel takes more than two seconds, and ends with an errno or 0."""
    library = build_library("slow_ioctl")
    return lambda err: {"LD_PRELOAD": str(library), "SLOW_IOCTL": str(err)}


def test_says_that_it_goes_on(forebay, slow, tmp_path):
    """The reason of a failure is the kernel's, whatever was printed meanwhile."""
    file = tmp_path / "a\x1b[31mfile"
    file.write_bytes(bytes(4096))
    harmless = str(file).replace("\x1b", "?")
    result = forebay("pin", file, **slow(errno.ENOMEM))
    assert result.status == FAILED
    assert result.err.startswith(f"{harmless}: being pinned, 2 s so far\nforebay pin: {harmless}: cannot pin so many pages\n")
    result = forebay("drop", file, **slow(0))
    assert result.status == DONE and result.err == f"{harmless}: being written back, 2 s so far\n"


def test_emu_create_says_that_it_goes_on(forebay, slow):
    """The kernel clears the memory."""
    result = forebay("emu", "create", "--size", "64G", **slow(0))
    assert result.status == DONE and result.err == "64.0 GiB of memory: being prepared, 2 s so far\n"
    assert forebay("emu", "create", "--size", "64G", **slow(errno.ENOMEM)).err.splitlines()[1:] == [
        "forebay emu create: there is no room for 64.0 GiB in memory",
        "    `free -m` shows how much is available. Choose a smaller --size."]


@pytest.mark.parametrize("error, status, said, left", [
    (0, DONE, "everything is on the lower file system\n", ""),
    (errno.EIO, LEFT, "", "not everything could be written back: Input/output error\n    Nothing is lost. The storage below refuses"),
    (errno.EBUSY, LEFT, "", "some pages could not be drained: direct I/O or a pipe may be changing them\n"),
])
def test_drain_without_proc_and_sysfs(forebay, slow, tmp_path, error, status, said, left):
    """The kernel drains all the same. How much there is isn't known, so no number is told."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    result = forebay("drain", folder, FOREBAY_SYSROOT=str(tmp_path), **slow(error))
    assert result.status == status and result.out == (f"{folder}: {said}" if said else "")
    assert result.err.startswith(f"{folder}: being written back\n") and left in result.err
    assert "/proc" not in result.err and not re.search(r"\b0\b", result.err.replace(str(folder), ""))


def on_a_terminal(*words, **environment):
    """What the command shows on standard error."""
    master, slave = pty.openpty()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=slave, check=True, env={**os.environ, "TERM": "vt100", **environment})
    os.close(slave)
    shown = os.read(master, 4096).decode()
    os.close(master)
    return shown


@pytest.mark.parametrize("verb", ["drain", "drop"])
def test_progress_on_a_terminal(command, slow, tmp_path, verb):
    """A name can't steer it, and a line that is too long for it isn't wrapped: the next one could not replace it."""
    path = tmp_path / "long\x1b[31mname"
    path.mkdir() if verb == "drain" else path.write_bytes(bytes(4096))
    for _ in range(5):      # on a busy host the call may end before anything is shown
        shown = on_a_terminal(command, verb, path, FOREBAY_SYSROOT=str(tmp_path), **slow(0))
        if "written" in shown:
            break
    assert "?[31mname: being written back" in shown and "\x1b[31m" not in shown
    assert re.fullmatch(r"(\r\x1b\[K\x1b\[\?7l[^\r\x1b]*\x1b\[\?7h)+(\r\x1b\[K)+", shown)

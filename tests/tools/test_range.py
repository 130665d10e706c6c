# SPDX-License-Identifier: GPL-2.0-only
"""forebay pin, drop, emu create and their like on the host: tests/vm has what they do."""

import errno

import pytest

from conftest import DONE, FAILED, build_library


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

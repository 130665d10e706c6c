# SPDX-License-Identifier: GPL-2.0-only
"""forebay probe: what it says of a device, as text, as JSON and for udev."""

import json
import os
import uuid
from pathlib import Path

import pytest

from conftest import CHECKOUT, DONE, FAILED, MIB

NAME = str(uuid.uuid4())


@pytest.fixture(params=["cache", "write log"])
def made(request, forebay, blank):
    """An image of each kind: its path, its name in the output and its type for udev."""
    image = blank()
    noun = [] if request.param == "cache" else ["writelog"]
    assert forebay(*noun, "format", "--uuid", NAME, image).status == DONE
    return image, request.param, "forebay" if request.param == "cache" else "forebay-writelog"


def test_says_what_it_is(forebay, made):
    image, kind, type_ = made
    result = forebay("probe", image)
    assert result.status == DONE and result.out == f"{image}: {kind}, UUID {NAME}\n"
    log_size = {"names_size": 0} if kind == "cache" else {}
    assert forebay("probe", "--json", image).json == {"device": str(image), "type": type_, "uuid": NAME, "version": 1, **log_size}


def test_properties_are_those_of_udev(forebay, made):
    image, _, type_ = made
    result = forebay("probe", "--udev", image)
    assert result.status == DONE
    assert dict(line.split("=") for line in result.out.splitlines()) == {
        "ID_FS_TYPE": type_, "ID_FS_VERSION": "1", "ID_FS_USAGE": "other", "ID_FS_UUID": NAME, "ID_FS_UUID_ENC": NAME}


def test_one_damaged_superblock_is_enough(forebay, made, patch):
    image, kind, _ = made
    for copy in range(2):
        patch(image, copy * 4096 + 100, b"\xff" * 8)
        result = forebay("probe", image)
        assert (result.out == f"{image}: {kind}, UUID {NAME}\n") == (copy == 0)
    assert result.status == FAILED and "both superblocks are damaged" in result.err


def test_changes_nothing(forebay, made, patch):
    image, _, _ = made
    patch(image, 100, b"\xff" * 8)
    before = image.read_bytes()
    forebay("probe", image)
    assert image.read_bytes() == before


def test_what_is_neither(forebay, blank, patch):
    image = blank()
    for contents, why in (b"", "not formatted"), (b"somebody's", "not a Forebay cache"):
        patch(image, 1000, contents)
        result = forebay("probe", image)
        assert result.status == FAILED and why in result.err and not result.out
        result = forebay("probe", "--udev", image)
        assert result == type(result)(DONE, "", "")


def test_what_cannot_be_read(forebay, blank, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path, why in {tmp_path / "missing": "No such file or directory", tmp_path: "it is neither a block device nor an image",
                      tmp_path / "fifo": "it is neither a block device nor an image",
                      Path("/dev/tty"): "it is neither a block device nor an image", blank(4096): "it is too short"}.items():
        result = forebay("probe", "--udev", path)
        assert result.status == FAILED and f"cannot read {path}: {why}" in result.err


def test_an_image_that_was_cut_short(forebay, made):
    image, _, _ = made
    with open(image, "r+b") as file:
        file.truncate(8 * MIB)
    assert forebay("probe", image).status == FAILED


def test_json_is_documented(forebay, made):
    page = (CHECKOUT / "docs/man/forebay-cache.8").read_text(encoding="utf-8")
    section = page.split(".Ss forebay probe")[1].split("\n.Ss")[0]
    for key in json.loads(forebay("probe", "--json", made[0]).out):
        assert key in section

# SPDX-License-Identifier: GPL-2.0-only
"""forebay check: explains damage, changes nothing, exits as fsck does."""

import os
import subprocess

import pytest

from conftest import DONE, FAILED, LEFT, MIB, said_by_a_slow_run

SUPER_SIZE = 144


def damaged(forebay, image, arguments=()):
    """Checks a damaged image: the check must find that, and must not write."""
    before = image.read_bytes()
    result = forebay("check", *arguments, image)
    assert result.status == LEFT
    assert image.read_bytes() == before
    return result


@pytest.mark.parametrize("verb, doing", [("check", "being checked"), ("format --force", "being formatted"), ("format", "being read"),
                                         ("status", "being read")])
def test_says_that_it_goes_on(command, blank, verb, doing):
    """If it takes long."""
    image = blank(8 << 30)
    subprocess.run([command, "format", image], stdout=subprocess.DEVNULL, check=True)
    assert said_by_a_slow_run(command, *verb.split(), image).startswith(f"{image}: {doing}, 2 s so far\n")


@pytest.mark.parametrize("noun", [(), ("writelog",)], ids=["cache", "log"])
def test_a_part_of_an_image(forebay, blank, noun):
    """The advice begins with what may be whole elsewhere, and says that formatting loses it."""
    image = blank()
    assert forebay(*noun, "format", image).status == DONE
    os.truncate(image, 6 * MIB)
    result = forebay(*noun, "check", image)
    assert result.status == LEFT
    said = result.err.splitlines()
    assert "layout does not fit the device" in said[0] and said[1].startswith("    It has 6.0 MiB: an image may be cut short")
    assert said[2].endswith(f"`forebay {' '.join([*noun, 'format'])} --force {image}` makes a new one; what this one holds is lost.")


def test_clean(forebay, cache):
    image = cache("bind", "file 0 0 live", "file 1 0 unlinked", "page 0 0 5 out-of-sync", "page 3 0 6 clean")
    result = forebay("check", image)
    assert result.status == DONE and not result.err
    assert f"{image}: clean\n" in result.out
    assert "2 files, 1 page out-of-sync, 1 clean" in result.out
    assert "22222222-2222-2222-2222-222222222222" in result.out


def test_clean_json(forebay, cache):
    report = forebay("check", "--json", cache("file 0 0 live", "page 0 0 5 out-of-sync")).json
    assert report["clean"] is True and report["findings"] == []
    assert report["lower_uuid"] is None
    assert report["pages_out_of_sync"] == 1 and report["files_used"] == 1


def test_leftovers_of_a_power_cut_are_clean(forebay, cache, patch, tables):
    image = cache("file 0 0 live", "page 0 0 5 out-of-sync")
    _, pages = tables(image)
    patch(image, pages + 16 + 8, b"prepared")     # a check word without a commit word
    assert forebay("check", image).status == DONE


@pytest.mark.parametrize("copy", [0, 1])
def test_damaged_superblock_copy(forebay, cache, patch, copy):
    image = cache("bind")
    patch(image, copy * 4096 + 40, b"\xff\xff")
    result = damaged(forebay, image)
    assert f"superblock {copy} is damaged; the other copy is used" in result.out
    assert "rewritten from the other at the next mount" in result.out
    assert "forebay format" not in result.out


def test_both_superblocks_damaged(forebay, cache, patch):
    image = cache()
    for copy in (0, 1):
        patch(image, copy * 4096 + 40, b"\xff\xff")
    result = damaged(forebay, image)
    assert "both superblocks are damaged" in result.err
    report = damaged(forebay, image, ["--json"]).json
    assert report["clean"] is False and report["findings"][0]["record"] == "superblock"


def test_damaged_file_record(forebay, cache, patch, tables):
    image = cache("file 3 4096 live", "page 9 3 5 out-of-sync")
    files, _ = tables(image)
    patch(image, files + 3 * 64 + 24, b"\xee")
    result = damaged(forebay, image)
    assert "file record 3 is damaged" in result.out
    assert "size at least 4096, handle type 1: ee 00" in result.out
    assert "page record 9 is damaged, or belongs to a damaged file record" in result.out
    assert "2 inconsistencies; nothing was changed" in result.out
    assert f"forebay check --repair {image}" in result.out


def test_damaged_page_record(forebay, cache, patch, tables):
    image = cache("file 0 0 live", "page 9 0 5 out-of-sync", "page 10 0 6 out-of-sync")
    _, pages = tables(image)
    patch(image, pages + 9 * 16 + 12, b"\xff\xff\xff\xff")
    report = damaged(forebay, image, ["--json"]).json
    finding, = report["findings"]
    assert (finding["record"], finding["number"]) == ("page record", 9)
    assert "damaged" in finding["problem"]
    assert "out-of-sync, file record 0, page 5 of the file (from byte 20480)" in finding["detail"]
    assert report["pages_out_of_sync"] == 1 and report["records_damaged"] == 1


def test_two_records_of_one_place(forebay, cache):
    image = cache("file 0 0 live", "page 1 0 5 out-of-sync", "page 2 0 5 clean")
    result = damaged(forebay, image)
    assert result.out.count("stands for the same page of the same file") == 2, "nobody knows which is right"
    assert "2 inconsistencies;" in result.out


def test_many_findings_are_cut_short_but_not_in_json(forebay, cache):
    image = cache("file 0 0 live", *(f"page {page} 0 1 clean" for page in range(100)))
    result = damaged(forebay, image)
    assert result.out.count("stands for the same page") == 50
    assert "and 50 more; --json lists them all" in result.out
    assert len(damaged(forebay, image, ["--json"]).json["findings"]) == 100


def test_image_cut_short(forebay, cache):
    image = cache()
    with open(image, "r+b") as opened:
        opened.truncate(8 * MIB)
    result = damaged(forebay, image)
    assert "does not fit the device" in result.err


def test_what_is_no_cache_cannot_be_checked(forebay, blank, tmp_path):
    image = blank()
    result = forebay("check", image)
    assert result.status == FAILED and "not formatted" in result.err

    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", image], check=True)
    result = forebay("check", image)
    assert result.status == FAILED and "It holds a file system (ext4)" in result.err

    assert forebay("check", tmp_path / "missing").status == FAILED
    assert forebay("check", blank(1000)).status == FAILED


def test_a_newer_format_cannot_be_checked(forebay, cache, patch):
    """A later version of the format, with a correct checksum."""
    image = cache()
    superblock = bytearray(image.read_bytes()[:SUPER_SIZE])
    superblock[8] = 3
    superblock[12:16] = bytes(4)
    superblock[12:16] = crc32c(superblock).to_bytes(4, "little")
    for copy in (0, 4096):
        patch(image, copy, superblock)
    result = forebay("check", image)
    assert result.status == FAILED and "newer version" in result.err
    assert forebay("format", image).status == FAILED


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff

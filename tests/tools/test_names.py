# SPDX-License-Identifier: GPL-2.0-only
"""Caches with a name log: forebay format --names, and what the other verbs say of the log."""

import json
import re

import pytest

from conftest import CHECKOUT, DONE, FAILED, LEFT, MIB, REPAIRED, USAGE

LOG = ("--names", "1m")
HELD = "holds 3 changes of names"


@pytest.mark.parametrize("size, option, made", [
    (16 * MIB, "64k", 65536), (16 * MIB, "65536", 65536), (16 * MIB, "0x10000", 65536), (16 * MIB, "70000", 69632),
    (16 * MIB, "8m", 8 * MIB), (4 * MIB, "2m", 2 * MIB), (16 * MIB, "auto", MIB), (4 * MIB, "auto", MIB),
    (96 * MIB, "auto", 3 * MIB), (4096 * MIB, "auto", 64 * MIB),
])
def test_makes_a_log(forebay, blank, size, option, made):
    image = blank(size)
    report = forebay("format", "--json", "--names", option, image).json
    assert report["names_size"] == made
    assert size // 2 - MIB < report["pages_total"] * 4096 + made <= size
    shown, = forebay("status", "--json", image).json
    assert (shown["names_size"], shown["names_records"], shown["names_damaged"]) == (made, 0, 0)
    probed = forebay("probe", "--json", image).json
    assert (probed["version"], probed["names_size"]) == (2, made)
    assert forebay("check", image).status == DONE


def test_says_that_there_is_one(forebay, blank):
    image = blank()
    assert ", name log of 1.0 MiB, UUID " in forebay("format", *LOG, image).out
    assert re.search(r"^  name log +1.0 MiB, 0 changes of names$", forebay("status", image).out, re.MULTILINE)
    assert forebay("probe", image).out.endswith(", name log of 1.0 MiB\n")
    assert dict(line.split("=") for line in forebay("probe", "--udev", image).out.splitlines())["ID_FS_VERSION"] == "2"
    result = forebay("check", image)
    assert f"{image}: name log of 1.0 MiB, empty\n{image}: clean\n" in result.out


def test_there_is_none_unless_it_is_asked_for(forebay, blank):
    image = blank()
    assert "name log" not in forebay("format", image).out
    assert forebay("probe", "--json", image).json["version"] == 1
    assert forebay("status", "--json", image).json[0]["names_size"] == 0
    assert "name log" not in forebay("status", image).out + forebay("check", image).out


def test_the_log_goes_when_the_cache_is_made_anew(forebay, cache):
    image = cache(options=LOG)
    assert forebay("format", image).status == DONE
    assert forebay("probe", "--json", image).json["version"] == 1
    assert not any(image.read_bytes()[144:4096])


@pytest.mark.parametrize("size", ["65535", "0", "5g", "4097m", "1x", "", "-1", "Auto", "99999999999t"])
def test_sizes_that_are_none(forebay, blank, size):
    image = blank()
    result = forebay("format", "--names", size, image)
    assert result.status == USAGE and f"--names {size}: expected a size from 64k to 4g, or auto" in result.err
    assert not any(image.read_bytes())


def test_refuses_more_than_half_of_the_device(forebay, blank):
    image = blank()
    for size in ("8196k", "4g"):
        result = forebay("format", "--names", size, image)
        assert result.status == FAILED and "has no room for a name log of" in result.err and "8.0 MiB" in result.err
        assert not any(image.read_bytes())
    result = forebay("format", "--names", "2m", blank(2 * MIB))
    assert result.status == FAILED and "at least 4 MiB" in result.err


def test_file_records_and_log_share_the_device(forebay, blank):
    image = blank()
    result = forebay("format", "--names", "8m", "--files", 100000, image)
    assert result.status == FAILED and "no room for 100000 file records" in result.err
    assert not any(image.read_bytes())


def test_changes_that_wait_are_no_damage(forebay, cache):
    """Those behind the last commit don't count."""
    image = cache("bind", "names 3 2", options=LOG)
    before = image.read_bytes()
    result = forebay("check", image)
    assert result.status == DONE and not result.err
    assert f"{image}: name log of 1.0 MiB {HELD}; the next mount replays them\n{image}: clean\n" in result.out
    report = forebay("check", "--json", image).json
    assert report["clean"] is True and report["names_records"] == 3 and report["names_damaged"] == 0
    shown, = forebay("status", "--json", image).json
    assert (shown["names_size"], shown["names_records"]) == (MIB, 3)
    out = forebay("status", image).out
    assert re.search(r"^  name log +1.0 MiB, 3 changes of names$", out, re.MULTILINE)
    assert "may lack 3 changes of names. To have it there, mount and unmount" in out
    assert image.read_bytes() == before


def test_format_refuses_changes_that_wait(forebay, cache):
    image = cache("bind", "names 3 0", options=LOG)
    before = image.read_bytes()
    for verb in (["format"], ["format", *LOG], ["writelog", "format"]):
        result = forebay(*verb, image)
        assert result.status == FAILED and f"{HELD} for the lower file system, 22222222-" in result.err
        assert "To keep that: mount" in result.err and "--force" in result.err
    assert image.read_bytes() == before
    assert forebay("format", "--force", *LOG, image).status == DONE
    assert forebay("status", "--json", image).json[0]["names_records"] == 0


def test_an_uncommitted_change_is_nothing_of_worth(forebay, cache):
    assert forebay("format", cache("bind", "names 0 2", options=LOG)).status == DONE


def damaged(forebay, image, forbids_mount=True):
    """Checks an image with a damaged name log; returns the text and the findings."""
    before = image.read_bytes()
    result, report = forebay("check", image), forebay("check", "--json", image)
    assert result.status == report.status == LEFT
    assert image.read_bytes() == before
    assert report.json["clean"] is False
    assert report.json["names_damaged"] == (len(report.json["findings"]) if forbids_mount else 0)
    assert "--repair" not in result.out, "that doesn't mend a log"
    return result.out, report.json["findings"]


@pytest.mark.parametrize("copy", [0, 1])
def test_damaged_header_copy(forebay, cache, patch, names_offsets, copy):
    image = cache("names 3 0", options=LOG)
    patch(image, names_offsets(image)[0] + copy * 4096 + 40, b"\xff\xff")
    out, _ = damaged(forebay, image, forbids_mount=False)
    assert HELD in out and "mount -t forebay" in forebay("status", image).out
    assert f"name log: header {copy} is damaged; the other copy is used" in out
    assert "the next mount rewrites a damaged copy" in out and "forbids mounting" not in out


def test_both_headers_damaged(forebay, cache, patch, names_offsets):
    image = cache("names 3 0", options=LOG)
    region = names_offsets(image)[0]
    for copy in (0, 1):
        patch(image, region + copy * 4096 + 40, b"\xff\xff")
    out, (finding,) = damaged(forebay, image)
    assert f"name log: region at byte {region} can't be opened: both headers of the name log are damaged" in out
    assert finding["record"] == "name log: region at byte" and "1 inconsistency; nothing was changed" in out


@pytest.mark.parametrize("word, name", [(0, "trim word"), (1, "commit word"), (2, "decided word at trim word")])
def test_damaged_word(forebay, cache, patch, names_offsets, word, name):
    image = cache("names 3 0", options=LOG)
    patch(image, names_offsets(image)[1] + 64 * word + 7, b"\x5a")
    out, _ = damaged(forebay, image)
    assert re.search(rf"^  name log: {name} \d+ is damaged$", out, re.MULTILINE)
    assert "a damaged one forbids mounting" in out


def test_damaged_record(forebay, cache, patch, names_offsets):
    image = cache("names 3 0", options=LOG)
    patch(image, names_offsets(image)[2] + 40, b"\xff\xff")
    out, (finding,) = damaged(forebay, image)
    assert re.search(r"^  name log: record \d+ is committed and can't be read\n +says: place \d+, kind 3, ", out, re.MULTILINE)
    assert finding["record"] == "name log: record" and "kind 3" in finding["detail"]
    assert f"{image}: name log of 1.0 MiB, damaged\n" in out


def test_damage_may_be_all_there_is_of_a_change(forebay, cache, patch, names_offsets):
    image = cache("names 1 0", options=LOG)
    patch(image, names_offsets(image)[2] + 40, b"\xff\xff")
    result = forebay("format", image)
    assert result.status == FAILED and "is a cache whose name log is damaged" in result.err and "forebay check" in result.err
    out = forebay("status", image).out
    assert f"The name log is damaged; `forebay check {image}` tells more" in out and "mount -t" not in out
    assert forebay("format", "--force", image).status == DONE


def test_repair_leaves_the_log(forebay, cache, patch, tables, names_offsets):
    """It sets damaged records of files aside all the same."""
    image = cache("file 0 0 live", "names 3 0", options=LOG)
    region, _, record = names_offsets(image)
    patch(image, record + 40, b"\xff\xff")
    log = image.read_bytes()[region:region + MIB]
    result = forebay("check", "--repair", "--yes", image)
    assert result.status == LEFT and "the damaged name log was left as it is" in result.err
    assert "will be set aside" not in result.out
    patch(image, tables(image)[0] + 20, b"\xff")
    result = forebay("check", "--repair", "--yes", image)
    assert result.status == LEFT and "set aside 1 file record" in result.out and "left as it is" in result.err
    assert image.read_bytes()[region:region + MIB] == log
    assert len(forebay("check", "--json", image).json["findings"]) == 1


def test_repair_beside_a_whole_log(forebay, cache, patch, tables):
    image = cache("file 0 0 live", "names 3 0", options=LOG)
    patch(image, tables(image)[0] + 20, b"\xff")
    assert forebay("check", "--repair", "--yes", image).status == REPAIRED
    assert HELD in forebay("check", image).out


@pytest.mark.parametrize("copy", [0, 1])
@pytest.mark.parametrize("offset", [40, 144, 152, 160])
def test_damaged_superblock_copy(forebay, cache, patch, copy, offset):
    """The fields of version 2 are verified, and written back by a repair."""
    image = cache("bind", options=LOG)
    whole = image.read_bytes()
    patch(image, copy * 4096 + offset, bytes([whole[offset] ^ 0x10]))
    result = forebay("check", image)
    assert result.status == LEFT and f"superblock {copy} is damaged; the other copy is used" in result.out
    assert forebay("check", "--repair", "--yes", image).status == REPAIRED
    assert image.read_bytes() == whole


def test_json_is_documented(forebay, cache):
    page = (CHECKOUT / "docs/man/forebay-cache.8").read_text(encoding="utf-8")
    for verb in ("format", "status"):
        section = page.split(f".Ss forebay {verb}")[1].split("\n.Ss")[0]
        image = cache(options=LOG)
        report = json.loads(forebay(verb, "--json", *(LOG if verb == "format" else ()), image).out)
        keys = {key for key in (report if verb == "format" else report[0]) if key.startswith("names")}
        assert keys and not [key for key in keys if key not in section]

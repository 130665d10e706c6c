# SPDX-License-Identifier: GPL-2.0-only
"""Bad blocks in superblocks and tables: each command says what is lost, and writes a bad block only to make it good."""

import uuid

import pytest

from conftest import DONE, FAILED, LEFT, REPAIRED, build_library

NAME = str(uuid.uuid4())
SECTOR = 512


@pytest.fixture(scope="session", name="library")
def library_fixture():
    """The library that gives images bad blocks."""
    return build_library("bad_blocks")


@pytest.fixture(name="bad")
def bad_fixture(forebay, library):
    """Runs the command: bad([8, 9], "check", image) with these sectors bad."""
    def run(sectors, *words, **environment):
        return forebay(*words, LD_PRELOAD=str(library), BAD_SECTORS=" ".join(map(str, sectors)), **environment)
    return run


@pytest.fixture(name="used")
def used_fixture(cache):
    """A cache with files 0, 1 and 9, which lie in two sectors of the file table, and pages of them."""
    return cache("bind", "file 0 8192 live", "file 1 0 live", "file 9 0 live", "page 0 0 5 out-of-sync", "page 1 1 6 clean",
                 "page 40 9 7 out-of-sync", "page 300 9 8 out-of-sync")


@pytest.mark.parametrize("copy", [0, 1])
def test_a_superblock(forebay, bad, used, copy):
    """The other copy is used; the repair writes the bad block, and changes nothing else."""
    before = used.read_bytes()
    result = bad([8 * copy], "check", used)
    assert result.status == LEFT and f"superblock {copy} is damaged; the other copy is used" in result.out
    report = bad([8 * copy], "check", "--json", used)
    assert report.status == LEFT and [one["record"] for one in report.json["findings"]] == ["superblock"]
    assert bad([8 * copy], "status", used).status == DONE
    assert used.read_bytes() == before
    result = bad([8 * copy], "check", "--repair", "--yes", used)
    assert result.status == REPAIRED and "rewrote a superblock" in result.out
    assert used.read_bytes() == before and forebay("check", used).status == DONE


@pytest.mark.parametrize("noun", [[], ["writelog"]])
@pytest.mark.parametrize("copy", [0, 1])
def test_probe_with_one_copy(forebay, bad, blank, noun, copy):
    image = blank()
    assert forebay(*noun, "format", "--uuid", NAME, image).status == DONE
    good = forebay("probe", "--udev", image)
    assert f"ID_FS_UUID={NAME}" in good.out and bad([8 * copy], "probe", "--udev", image) == good
    result = bad([0, 8], "probe", image)
    assert result.status == FAILED and f"cannot read {image}: Input/output error" in result.err


def test_both_superblocks(forebay, bad, used):
    """Nothing but a format with --force goes on from there, and that does."""
    result = bad([0, 8], "check", used)
    assert result.status == LEFT and "both superblocks are damaged" in result.err
    assert bad([0, 8], "check", "--json", used).json["findings"][0]["record"] == "superblock"
    assert "both superblocks are damaged" in bad([0, 8], "status", used).err
    result = bad([0, 8], "format", used)
    assert result.status == FAILED and "--force" in result.err
    assert bad([0, 8], "format", "--force", used).status == DONE
    assert forebay("check", used).status == DONE


def test_a_sector_of_the_file_table(forebay, bad, used, tables):
    """Records in the other sectors of its page are read, and stay."""
    sector = tables(used)[0] // SECTOR
    result = bad([sector], "check", used)
    assert result.status == LEFT and "file record 0 is damaged" in result.out
    assert "file record 7 is damaged" in result.out and "file record 8" not in result.out
    assert "cannot be read: a bad block" in result.out
    report = bad([sector], "status", "--json", used)
    assert report.status == DONE and report.json[0]["records_damaged"] == 10 and report.json[0]["files_used"] == 1
    result = bad([sector], "check", "--repair", "--yes", used)
    assert result.status == REPAIRED, result.err
    assert "set aside 8 file records and 2 page records" in result.out
    report = forebay("check", "--json", used)
    assert report.status == DONE and report.json["files_used"] == 1 and report.json["pages_out_of_sync"] == 2


def test_a_sector_of_the_page_table(forebay, bad, used, tables):
    sector = tables(used)[1] // SECTOR
    report = bad([sector], "check", "--json", used)
    assert report.status == LEFT and {one["number"] for one in report.json["findings"]} == set(range(32))
    assert bad([sector], "check", "--repair", "--yes", used).status == REPAIRED
    report = forebay("check", "--json", used)
    assert report.status == DONE and report.json["files_used"] == 3 and report.json["pages_out_of_sync"] == 2


def test_a_repair_that_is_cut_short(forebay, bad, used, tables, library):
    """The bad block has been written, and nothing set aside yet: the records stay damaged."""
    sector = tables(used)[0] // SECTOR
    heal = bad([sector], "check", "--repair", "--yes", used, BAD_STOP="1")
    assert heal.status != REPAIRED
    report = forebay("check", "--json", used)
    assert report.status == LEFT
    assert {one["number"] for one in report.json["findings"] if one["record"] == "file record"} == set(range(8))
    assert forebay("check", "--repair", "--yes", used).status == REPAIRED
    assert forebay("check", "--json", used).json["pages_out_of_sync"] == 2


@pytest.mark.parametrize("words", [["format", "--force"], ["check", "--repair", "--yes"]])
def test_a_block_that_stays_bad(bad, used, tables, words):
    result = bad([tables(used)[0] // SECTOR], *words, used, BAD_FOREVER="1")
    assert result.status == FAILED and f"writing to {used} failed: Input/output error" in result.err


def test_no_space_for_an_image(bad, used, tables):
    """A store to a hole ends as one to a bad block."""
    result = bad([tables(used)[0] // SECTOR], "format", "--force", used, BAD_FULL="1")
    assert result.status == FAILED and f"{used}: no space left for the image" in result.err and "bad block" not in result.err


def test_format_makes_tables_good(forebay, bad, used, tables):
    for sector in tables(used)[0] // SECTOR + 3, tables(used)[1] // SECTOR:
        assert bad([sector], "format", "--force", used).status == DONE
        assert forebay("check", used).status == DONE


def test_a_write_log(forebay, bad, log, log_offsets):
    image = log("open 0", "write 100 8")
    table, _, chunk = log_offsets(image)
    for sector, what in (0, "superblock"), (table // SECTOR, "generation"), (chunk // SECTOR, "chunk"):
        report = bad([sector], "writelog", "check", "--json", image)
        assert report.status == LEFT and report.json["findings"][0]["what"] == what
        assert bad([sector], "writelog", "check", image).status == LEFT
        assert bad([sector], "writelog", "status", image).status in (DONE, FAILED)
    result = bad([0, 8], "writelog", "check", image)
    assert result.status == LEFT and "both superblocks are damaged" in result.err
    assert bad([0, 8, table // SECTOR, chunk // SECTOR], "writelog", "format", "--force", image).status == DONE
    assert forebay("writelog", "check", image).status == DONE

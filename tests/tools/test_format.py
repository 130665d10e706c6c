# SPDX-License-Identifier: GPL-2.0-only
"""forebay format: what it makes, and what it refuses to overwrite."""

import struct
import subprocess
import uuid

import pytest

from conftest import DONE, FAILED, MIB, build_library


def test_makes_an_empty_cache(forebay, blank):
    image = blank(64 * MIB)
    result = forebay("format", image)
    assert result.status == DONE and not result.err
    assert result.out.startswith(f"{image}: empty cache, 62.0 MiB in 15872 pages, room for 1024 files, UUID ")
    assert forebay("check", image).status == DONE


def test_options_take_effect(forebay, blank):
    image, name = blank(), str(uuid.uuid4())
    made = forebay("format", "--json", "--files", 77, "--uuid", name, image).json
    assert made["files_total"] == 77
    assert made["cache_uuid"] == name
    assert made["device"] == str(image) and made["device_size"] == 16 * MIB
    seen, = forebay("status", "--json", image).json
    assert {key: seen[key] for key in ("cache_uuid", "files_total", "pages_total")} == \
        {key: made[key] for key in ("cache_uuid", "files_total", "pages_total")}


def test_two_caches_have_two_names(forebay, blank):
    names = {forebay("format", "--json", blank(name=name)).json["cache_uuid"] for name in "ab"}
    assert len(names) == 2


def test_an_empty_cache_may_be_made_anew(forebay, cache):
    assert forebay("format", cache("bind")).status == DONE


def test_clean_pages_are_nothing_of_worth(forebay, cache):
    assert forebay("format", cache("bind", "file 0 0 live", "page 0 0 0 clean")).status == DONE


def test_refuses_what_is_too_small(forebay, blank):
    """--force doesn't help, and isn't advised."""
    for options in [], ["--force"]:
        result = forebay("format", *options, blank(4 * MIB - 1))
        assert result.status == FAILED
        assert result.err.endswith("at least 4 MiB\n")


def test_refuses_more_file_records_than_fit(forebay, blank):
    image = blank()
    image.write_bytes(bytes(16 * MIB))
    result = forebay("format", "--files", 1000000, image)
    assert result.status == FAILED
    assert "no room for 1000000 file records" in result.err
    assert not any(image.read_bytes()), "something was written"


def test_refuses_what_is_no_device(forebay, tmp_path):
    for path in (tmp_path, "/dev/null"):
        result = forebay("format", path)
        assert result.status == FAILED
        assert "neither a block device nor an image file" in result.err
    result = forebay("format", tmp_path / "missing")
    assert result.status == FAILED
    assert "No such file or directory" in result.err


def mkfs_ext4(image):
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-L", "precious", image], check=True)


def mkfs_xfs(image):
    with open(image, "r+b") as opened:
        opened.truncate(300 * MIB)
    subprocess.run(["/usr/sbin/mkfs.xfs", "-q", image], check=True)


def mkswap(image):
    subprocess.run(["/usr/sbin/mkswap", "-q", image], check=True, stderr=subprocess.DEVNULL)


def partition(image):
    with open(image, "r+b") as opened:
        opened.seek(446)
        opened.write(struct.pack("<BBBBBBBBII", 0, 0, 33, 0, 0x83, 0, 65, 0, 2048, 4096))
        opened.seek(510)
        opened.write(b"\x55\xaa")


@pytest.mark.parametrize("maker, name", [
    (mkfs_ext4, 'a file system (ext4, labelled "precious")'),
    (mkfs_xfs, "a file system (xfs)"),
    (mkswap, "data of type swap"),
    (partition, "a partition table (dos)"),
])
def test_refuses_what_others_made_and_names_it(forebay, blank, maker, name):
    image = blank()
    maker(image)
    before = image.read_bytes()
    result = forebay("format", image)
    assert result.status == FAILED and not result.out
    assert f"holds {name}\n" in result.err
    assert "--force" in result.err
    assert image.read_bytes() == before

    assert forebay("format", "--force", image).status == DONE
    assert not subprocess.run(["/usr/sbin/wipefs", "-n", image], capture_output=True, text=True, check=True).stdout
    assert forebay("check", image).status == DONE


def test_refuses_data_of_unknown_kind(forebay, blank, patch):
    image = blank()
    patch(image, 1000, b"somebody's")
    result = forebay("format", image)
    assert result.status == FAILED
    assert "something that is not a Forebay cache" in result.err
    assert forebay("format", "--force", image).status == DONE


def test_refuses_pages_not_written_back(forebay, cache):
    image = cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync", "page 1 0 1 out-of-sync", "page 2 0 2 clean")
    before = image.read_bytes()
    result = forebay("format", image)
    assert result.status == FAILED
    assert "holds 2 pages (8 KiB) not yet written" in result.err
    assert "22222222-2222-2222-2222-222222222222" in result.err
    assert image.read_bytes() == before
    assert forebay("format", "--force", image).status == DONE
    assert forebay("status", "--json", image).json[0]["pages_out_of_sync"] == 0


def test_pages_of_a_freed_file_are_nothing_of_worth(forebay, cache, patch, tables):
    image = cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync")
    files, _ = tables(image)
    patch(image, files, bytes([0]))       # the state in the commit word; the generation stays
    assert forebay("format", image).status == DONE


def test_refuses_sizes_not_settled(forebay, cache):
    image = cache("bind", "file 0 12345 live")
    result = forebay("format", image)
    assert result.status == FAILED
    assert "holds the size or time of 1 file of" in result.err


def test_refuses_damaged_records(forebay, cache, patch, tables):
    image = cache("bind", "file 0 0 live")
    files, _ = tables(image)
    patch(image, files + 20, b"\xff")
    result = forebay("format", image)
    assert result.status == FAILED
    assert "1 damaged record" in result.err and "forebay check" in result.err
    assert forebay("format", "--force", image).status == DONE


def test_refuses_a_cache_with_two_damaged_superblocks(forebay, cache, patch):
    image = cache("bind")
    for copy in (0, 4096):
        patch(image, copy + 60, b"\xff")
    result = forebay("format", image)
    assert result.status == FAILED
    assert "damaged" in result.err


def test_refuses_a_write_log_that_holds_writes(forebay, log):
    """Like `writelog format`, with the number of writes, and how to keep them."""
    image = log("bind 1000 disk17", "open 0", "write 8 8", "discard 0 4")
    before = image.read_bytes()
    result = forebay("format", image)
    assert result.status == FAILED and not result.out
    assert "is a write log that holds 2 writes (4 KiB) not yet on its origin" in result.err
    assert f"forebay writelog create NAME ORIGIN {image}" in result.err and "disk17" in result.err and "--force" in result.err
    assert image.read_bytes() == before
    assert forebay("format", "--force", image).status == DONE


def test_write_log_refuses_a_cache_that_holds_pages(forebay, cache):
    image = cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync")
    before = image.read_bytes()
    result = forebay("writelog", "format", image)
    assert result.status == FAILED and "is a cache that holds 1 page (4 KiB) not yet written" in result.err
    assert f"mount -t forebay -o cache={image}" in result.err and image.read_bytes() == before
    assert forebay("writelog", "format", "--force", image).status == DONE


def test_what_is_opened_is_what_was_looked_at(forebay, blank):
    """Another file takes the path in between."""
    image, other, library = blank(), blank(8 * MIB, "other.img"), build_library("swap")
    other.write_bytes(b"precious" * 1024 * 1024)
    before = other.read_bytes()
    result = forebay("format", "--force", image, LD_PRELOAD=str(library), SWAP_PATH=str(image), SWAP_WITH=str(other))
    assert result.status == FAILED and f"{image} was replaced while it was being opened" in result.err
    assert image.read_bytes() == before


@pytest.mark.parametrize("words", [["format"], ["format", "--names", "1m"], ["writelog", "format"]])
def test_a_format_that_is_cut_short_leaves_one_thing(forebay, blank, patch, words):
    """VMFS has its superblock at 2 MiB, where no table of Forebay's is. The device is never both."""
    library, seen = build_library("kill_at"), set()
    for calls in range(1, 20):
        image = blank()
        patch(image, 2 * MIB, b"\x5e\xf1\xab\x2f")
        result = forebay(*words, "--force", image, LD_PRELOAD=str(library), KILL_AT=str(calls))
        foreign = subprocess.run(["/usr/sbin/wipefs", "-n", image], capture_output=True, text=True, check=True).stdout
        ours = forebay("probe", image).status == DONE
        assert not (ours and foreign), calls
        seen.add((ours, bool(foreign)))
        if result.status == DONE:
            break
        assert result.status == -9
        assert forebay(*words, "--force", image).status == DONE
    assert result.status == DONE and seen == {(False, True), (False, False), (True, False)}

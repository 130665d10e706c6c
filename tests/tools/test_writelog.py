# SPDX-License-Identifier: GPL-2.0-only
"""forebay writelog on images: format, check and status; caches and logs refuse each other."""

import subprocess
import time
import uuid

import pytest

from conftest import DONE, FAILED, LEFT, MIB, said_by_a_slow_run

SUPER_SIZE = 160
LINE = 64


def damaged(forebay, image, arguments=()):
    """Checks a damaged log: the check must find that, and must not write."""
    before = image.read_bytes()
    result = forebay("writelog", "check", *arguments, image)
    assert result.status == LEFT
    assert image.read_bytes() == before
    return result


# --- format ---

def test_makes_an_empty_log(forebay, blank):
    image = blank(64 * MIB)
    result = forebay("writelog", "format", image)
    assert result.status == DONE and not result.err
    assert result.out.startswith(f"{image}: empty write log, 62.0 MiB in 16 generations of 32 chunks of 124 KiB, "
                                 "no data checksums, UUID ")
    assert forebay("writelog", "check", image).status == DONE


def test_options_take_effect(forebay, blank):
    image, name = blank(4 * MIB), str(uuid.uuid4())
    made = forebay("writelog", "format", "--json", "--generations", 5, "--chunk-size", 32768, "--align", 512,
                   "--data-checksums", "--uuid", name, image).json
    expected = {"generations_total": 5, "chunk_size": 32768, "align": 512, "data_checksums": True, "uuid": name,
                "bound": False, "chunks_per_generation": 25}
    assert {key: made[key] for key in expected} == expected
    seen, = forebay("writelog", "status", "--json", image).json
    assert {key: seen[key] for key in expected} == expected


def test_smallest_log(forebay, blank):
    assert forebay("writelog", "format", blank(MIB)).status == DONE
    result = forebay("writelog", "format", blank(MIB - 1))
    assert result.status == FAILED and "at least 1 MiB" in result.err
    result = forebay("writelog", "format", blank(0))
    assert result.status == FAILED and "is empty" in result.err


def test_large_devices_are_used_as_a_whole(forebay, blank):
    """A generation has at most 16 GiB, so there are more of them. Unused space is reported; the target takes 1 TiB at most."""
    image, size = blank(300 << 30), 300 << 30
    chunks = ["--chunk-size", 16 << 20]         # large ones: few headers in the sparse file
    made = forebay("writelog", "format", "--json", *chunks, image).json
    assert size - (1 << 30) < made["bytes_total"] <= size and made["generations_total"] == 19
    result = forebay("writelog", "format", "--force", *chunks, "--generations", 8, image)
    assert result.status == DONE and "172.0 GiB of the 300.0 GiB" in result.err and "choose more generations" in result.err
    result = forebay("writelog", "format", blank((1 << 40) + MIB))
    assert result.status == FAILED and "more than 1 TiB" in result.err


@pytest.mark.parametrize("verb", [["format"], ["format", "--names", "1m"], ["writelog", "format", "--chunk-size", 16384]])
def test_holes_of_an_image_stay_holes(forebay, blank, verb):
    """A log of 1 GiB has a word in each 16 KiB. They are zeros, as a hole is."""
    image = blank(1 << 30)
    if subprocess.run(["stat", "-f", "-c", "%T", image], capture_output=True, text=True, check=True).stdout == "tmpfs\n":
        pytest.skip("tmpfs allocates what is read by a mapping")
    assert forebay(*verb, image).status == DONE
    assert image.stat().st_blocks * 512 <= MIB


def test_refuses_more_than_fits(forebay, blank):
    image = blank(4 * MIB)
    result = forebay("writelog", "format", "--generations", 4096, "--chunk-size", 16384, image)
    assert result.status == FAILED and "no room for such generations and chunks" in result.err
    assert not any(image.read_bytes()), "something was written"


def test_refuses_writes_not_yet_on_the_origin(forebay, log):
    image = log("bind 1000 disk17", "open 0", "write 8 8", "discard 0 4")
    before = image.read_bytes()
    result = forebay("writelog", "format", image)
    assert result.status == FAILED and not result.out
    assert "holds 2 writes (4 KiB) not yet on its origin" in result.err
    assert "disk17" in result.err
    assert image.read_bytes() == before
    assert forebay("writelog", "format", "--force", image).status == DONE
    assert forebay("writelog", "status", "--json", image).json[0]["entries"] == 0


def test_a_log_that_was_written_back_may_be_made_anew(forebay, log):
    assert forebay("writelog", "format", log("bind 1000 d", "open 0", "write 8 8", "free 0")).status == DONE


def test_refuses_a_damaged_log(forebay, log, log_offsets, patch):
    image = log("open 0", "write 8 8", "seal 0 1")
    patch(image, log_offsets(image)[0] + 3, b"\xff")
    result = forebay("writelog", "format", image)
    assert result.status == FAILED and "damaged in 1 place" in result.err


def test_refuses_a_file_system(forebay, blank):
    image = blank(64 * MIB)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", image], check=True)
    result = forebay("writelog", "format", image)
    assert result.status == FAILED and "holds a file system (ext4)" in result.err


# --- caches and logs ---

def test_a_cache_is_no_log(forebay, cache):
    image = cache("bind", "file 0 0 live", "page 0 0 7 out-of-sync")
    before = image.read_bytes()
    for verb in ("format", "check", "status"):
        result = forebay("writelog", verb, image)
        assert result.status == FAILED
        assert ("is a cache that holds 1 page" if verb == "format" else "is a cache of the forebay file system, not a write log") in result.err
        assert verb == "format" or f"`forebay {verb} {image}`" in result.err
    assert image.read_bytes() == before
    assert forebay("writelog", "format", "--force", image).status == DONE


def test_a_log_is_no_cache(forebay, log):
    image = log("open 0", "write 8 8")
    before = image.read_bytes()
    for verb in ("format", "check", "status"):
        result = forebay(verb, image)
        assert result.status == FAILED
        assert ("is a write log that holds 1 write" if verb == "format" else "is a write log of forebay-writelog, not a cache") in result.err
        assert verb == "format" or f"`forebay writelog {verb} {image}`" in result.err
    assert image.read_bytes() == before
    assert forebay("format", "--force", image).status == DONE


# --- check ---

def test_clean(forebay, log):
    image = log("bind 1000 disk17", "open 3", "write 8 8", "write 8 1", "seal 3 2", "open 1", "discard 0 100")
    result = forebay("writelog", "check", image)
    assert result.status == DONE and not result.err
    assert "2 writes (4.5 KiB), 1 discard to replay" in result.out
    assert "for an origin of 1000 sectors, disk17" in result.out
    assert f"{image}: clean\n" in result.out


def test_clean_json(forebay, log):
    report = forebay("writelog", "check", "--json", log("open 0", "write 8 8")).json
    assert report["clean"] is True and report["findings"] == []
    assert (report["writes"], report["discards"], report["bytes_used"]) == (1, 0, 4096)
    assert (report["generations_open"], report["generations_free"]) == (1, 3)


def test_leftovers_of_a_power_cut_are_clean(forebay, log, log_offsets, patch):
    image = log("open 0", "write 8 8")
    header = log_offsets(image)[2]
    patch(image, header - 2 * LINE, b"a header that no word counts yet")
    assert forebay("writelog", "check", image).status == DONE


@pytest.mark.parametrize("copy", [0, 1])
def test_damaged_superblock_copy(forebay, log, patch, copy):
    image = log()
    patch(image, copy * 4096 + 40, b"\xff\xff")
    result = damaged(forebay, image)
    assert f"superblock {copy} is damaged; the other copy is used" in result.out
    assert "Copy the device first" not in result.out


def test_both_superblocks_damaged(forebay, log, patch):
    image = log()
    for copy in (0, 1):
        patch(image, copy * 4096 + 40, b"\xff\xff")
    assert "both superblocks are damaged" in damaged(forebay, image).err
    report = damaged(forebay, image, ["--json"]).json
    assert report["clean"] is False and report["findings"][0]["what"] == "superblock"


def test_each_kind_of_damage(forebay, log, log_offsets, patch):
    places = {
        "generation": ("table", 3, "generation 0 is damaged", "of a damaged one all are lost"),
        "chunk": ("header", 3, "generation 0, chunk 0 is damaged", "how many writes it holds"),
        "entry": ("header", 3 - LINE, "generation 0, chunk 0, entry 0 is damaged", "which sectors were written"),
        "data": ("data", 3, "generation 0, chunk 0, entry 0 has data that do not match", "hold neither"),
    }
    for what, (where, offset, place, meaning) in places.items():
        image = log("open 0", "write 800 8", "write 16 8", "seal 0 2", options=["--data-checksums"])
        patch(image, dict(zip(("table", "data", "header"), log_offsets(image)))[where] + offset, b"\xa5")
        result = damaged(forebay, image)
        assert place in result.out and meaning in result.out
        assert "1 inconsistency" in result.out
        assert f"forebay writelog create --option on_damage=skip NAME ORIGIN {image}\n" in result.out
        finding, = damaged(forebay, image, ["--json"]).json["findings"]
        assert finding["what"] == what and finding["generation"] == 0
        if what == "data":
            assert (finding["sector"], finding["nr_sectors"]) == (800, 8)


def test_a_lost_chunk_is_missed(forebay, log, log_offsets, patch):
    image = log("open 0", "write 8 8", "seal 0 1")
    patch(image, log_offsets(image)[2], bytes(8))
    result = damaged(forebay, image)
    assert "generation 0 does not hold as many entries as it was sealed with" in result.out


def test_says_that_it_goes_on(command, log):
    """Only if the check takes long."""
    image = log(*(f"open {gen} write 0 32000" for gen in range(4)), size=70 * MIB,
                options=["--generations", "4", "--chunk-size", str(16 * MIB), "--data-checksums"])
    begun = time.monotonic()
    said = subprocess.run([command, "writelog", "check", image], capture_output=True, check=True).stderr
    assert not said or time.monotonic() > begun + 2
    assert said_by_a_slow_run(command, "writelog", "check", image).startswith(f"{image}: being checked, 2 s so far\n")


def test_format_says_that_it_goes_on(command, blank):
    """If it takes long: all words of chunks are read."""
    image = blank(1 << 30)
    said = said_by_a_slow_run(command, "writelog", "format", "--force", "--chunk-size", "16384", image)
    assert said.startswith(f"{image}: being formatted, 2 s so far\n")


MUTATIONS = 150


@pytest.mark.parametrize("options", [(), ("--data-checksums",)], ids=["plain", "checksums"])
def test_mutated_images(forebay, log, fuzz_log, options):
    """Whatever the log holds, the check answers; it neither crashes nor writes."""
    image = log("open 1", "write 8 8", "discard 0 64", "seal 1 2", "open 0", "write 800 3", "free 1", "open 2",
                "write 1 1", size=MIB, options=options)
    good, seen = image.read_bytes(), set()
    for seed in range(MUTATIONS):
        image.write_bytes(good)
        subprocess.run([fuzz_log, image, str(seed)], check=True)
        before = image.read_bytes()
        for verb in ("check", "status"):
            result = forebay("writelog", verb, "--json", image)
            assert result.status in (DONE, LEFT, FAILED), f"seed {seed}: {result}"
            seen.add((verb, result.status))
        assert image.read_bytes() == before
    assert {("check", DONE), ("check", LEFT), ("check", FAILED), ("status", DONE), ("status", FAILED)} <= seen


# --- status, and what needs the kernel ---

def test_status_of_a_log(forebay, log):
    image = log("bind 1000 disk17", "open 0", "write 8 8")
    result = forebay("writelog", "status", image)
    assert result.status == DONE and not result.err
    assert "not in use" in result.out and "1 write (4 KiB), 0 discards" in result.out
    assert "500 KiB, disk17" in result.out
    assert "use the two together again" in result.out
    shown, = forebay("writelog", "status", "--json", image).json
    assert shown["in_use"] is False and shown["origin_id"] == "disk17" and shown["entries"] == 1


@pytest.mark.parametrize("sectors, text", [
    (1, "512 B"), (2, "1 KiB"), (3, "1.5 KiB"), (4096, "2.0 MiB"), (1953525168, "931.5 GiB"), (11721045168, "5.5 TiB"),
])
def test_sizes(forebay, log, sectors, text):
    result = forebay("writelog", "status", log(f"bind {sectors} disk17", "open 0", "write 0 1"))
    assert f"  origin       {text}, disk17\n" in result.out


def test_no_such_device(forebay, mapper, tmp_path):
    for verb in ("flush", "remove", "resume", "latency"):
        result = mapper("writelog", verb, "nothing")
        assert result.status == FAILED and "nothing is not a device with a write log" in result.err
    result = forebay("writelog", "status", tmp_path / "missing")
    assert result.status == FAILED and "is neither a device with a write log nor a file" in result.err
    result = forebay("writelog", "create", "name", tmp_path / "missing", tmp_path / "log")
    assert result.status == FAILED and "cannot be an origin" in result.err

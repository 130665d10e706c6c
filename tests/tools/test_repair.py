# SPDX-License-Identifier: GPL-2.0-only
"""forebay check --repair: sets damaged records aside, and nothing else, and only after a confirmation."""

import os
import pty
import signal
import subprocess
import time

import pytest

from conftest import DONE, FAILED, LEFT, MIB, REPAIRED, USAGE, stop_for_two_seconds

GOOD = ("bind", "file 0 8192 live", "page 0 0 5 out-of-sync", "page 3 0 6 clean")


@pytest.fixture(name="broken")
def broken_fixture(cache, patch, tables):
    """An image with good records, a damaged file record with two pages, and a damaged page record."""
    image = cache(*GOOD, "file 3 4096 live", "page 9 3 5 out-of-sync", "page 10 3 6 clean", "page 12 0 9 out-of-sync")
    files, pages = tables(image)
    patch(image, files + 3 * 64 + 24, b"\xee")
    patch(image, pages + 12 * 16 + 12, b"\xff\xff\xff\xff")
    return image


def on_a_terminal(command, image, answer):
    """Runs the repair on a terminal, with an answer typed; returns the status and the output."""
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run([command, "check", "--repair", image], stdin=theirs, stdout=subprocess.PIPE, text=True,
                          timeout=20, check=False)
    for fd in (ours, theirs):
        os.close(fd)
    return done.returncode, done.stdout


def test_repair(forebay, broken, tables):
    """All good records are left, and no others."""
    result = forebay("check", "--repair", "--yes", broken)
    assert result.status == REPAIRED, result.err
    assert "handle type 1: ee 00" in result.out and "page 9 of the file (from byte 36864)" in result.out
    assert "1 file record with all their pages, and 3 page records, will be set aside" in result.out
    assert "repaired" in result.out and "4 inconsistencies\n" in result.out and "nothing was changed" not in result.out
    report = forebay("check", "--json", broken)
    assert report.status == DONE
    assert report.json["files_used"] == 1 and report.json["pages_out_of_sync"] == 1 and report.json["pages_clean"] == 1
    files, pages = tables(broken)
    data = broken.read_bytes()
    assert data[files:files + 8] != bytes(8) and data[files + 3 * 64] & 3 == 0
    for page in (9, 10, 12):
        assert data[pages + page * 16:pages + page * 16 + 8] == bytes(8)
    again = forebay("check", "--repair", "--yes", broken)
    assert again.status == DONE and "set aside" not in again.out
    assert broken.read_bytes() == data


def test_one_command_at_a_time(forebay, broken, command):
    """While a repair waits for its confirmation no other command writes to the image: the records would be others then."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([command, "check", "--repair", broken], stdin=theirs, stdout=subprocess.PIPE) as waiting:
        while b"set aside" not in waiting.stdout.readline():
            pass
        before = broken.read_bytes()
        for words in ("format", "--force"), ("writelog", "format", "--force"), ("check", "--repair", "--yes"), ("check",):
            result = forebay(*words, broken)
            assert result.status == FAILED and f"{broken} is in use by another command" in result.err
        assert forebay("status", broken).status == DONE and broken.read_bytes() == before
        os.write(ours, b"yes\n")
        waiting.communicate(timeout=20)
    for fd in (ours, theirs):
        os.close(fd)
    assert waiting.returncode == REPAIRED


def test_nothing_is_written_unconfirmed(forebay, broken, command):
    before = broken.read_bytes()
    result = forebay("check", "--repair", broken)
    assert result.status == LEFT and "must be confirmed" in result.err and "--yes" in result.err
    for answer in (b"n\n", b"\n", b"\x04"):
        status, screen = on_a_terminal(command, broken, answer)
        assert status == LEFT and "nothing was changed" in screen
    assert broken.read_bytes() == before
    status, screen = on_a_terminal(command, broken, b"y\n")
    assert status == REPAIRED and "repaired" in screen


def test_both_records_of_one_place_go(forebay, cache):
    image = cache("file 0 0 live", "page 1 0 5 out-of-sync", "page 2 0 5 clean", "page 3 0 6 out-of-sync",
                  "file 4 0 live", "page 6 4 0 out-of-sync")
    assert forebay("check", "--repair", "--yes", image).status == REPAIRED
    report = forebay("check", "--json", image).json
    assert report["clean"] and report["pages_out_of_sync"] == 2 and report["files_used"] == 2


@pytest.mark.parametrize("copy", [0, 1])
def test_superblock_copy(forebay, cache, patch, copy):
    image = cache(*GOOD)
    before = image.read_bytes()
    patch(image, copy * 4096 + 40, b"\xff\xff")
    result = forebay("check", "--repair", "--yes", image)
    assert result.status == REPAIRED and "rewrote a superblock" in result.out
    assert image.read_bytes() == before


@pytest.fixture(name="many_damaged")
def many_damaged_fixture(cache, patch, tables):
    """Makes a cache of 128 MiB with many damaged file records: each takes a look at all pages."""
    def make():
        image = cache(*GOOD, size=128 * MIB)
        patch(image, tables(image)[0] + 64 * 512, b"\xee" * 64 * 512)
        return image
    return make


def test_says_that_it_goes_on(command, many_damaged):
    """The repair is stopped for two seconds."""
    image = many_damaged()
    with subprocess.Popen([command, "check", "--repair", "--yes", image], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as repair:
        while "will be set aside" not in repair.stdout.readline():
            pass
        stop_for_two_seconds(repair)
        said = repair.communicate(timeout=60)[1]
    assert repair.returncode == REPAIRED
    assert f"{image}: being repaired, 2 s so far\n" in said


@pytest.mark.parametrize("verb", [["check", "--repair", "--yes"], ["format", "--force"]])
def test_interrupted(forebay, command, many_damaged, verb):
    """The device says what it is, and the same again does the rest."""
    for delay in range(0, 60, 6):
        image = many_damaged()
        with subprocess.Popen([command, *verb, image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as done:
            time.sleep(delay / 1000)
            done.send_signal(signal.SIGINT)
        found = forebay("check", "--json", image)
        assert found.status in (DONE, LEFT)
        if verb[0] == "check":
            assert found.json["pages_out_of_sync"] == found.json["pages_clean"] == 1
        elif found.status == LEFT and "pages_total" not in found.json:
            assert found.json["findings"][0]["record"] == "superblock"
            assert "formatting was cut short" in forebay("probe", image).err
        assert forebay(*verb, image).status in (DONE, REPAIRED)
        assert forebay("check", image).status == DONE


def test_superblocks_beyond_repair(forebay, cache, patch):
    image = cache(*GOOD)
    for copy in (0, 1):
        patch(image, copy * 4096 + 40, b"\xff\xff")
    before = image.read_bytes()
    result = forebay("check", "--repair", "--yes", image)
    assert result.status == LEFT and "both superblocks are damaged" in result.err
    assert image.read_bytes() == before


def test_clean_cache_is_left_alone(forebay, cache):
    image = cache(*GOOD)
    before = image.read_bytes()
    assert forebay("check", "--repair", "--yes", image).status == DONE
    assert image.read_bytes() == before


def test_all_is_listed(forebay, cache):
    """Also where check without --repair would shorten the list."""
    image = cache("file 0 0 live", *(f"page {page} 0 1 clean" for page in range(100)))
    result = forebay("check", "--repair", "--yes", image)
    assert result.status == REPAIRED
    assert result.out.count("stands for the same page") == 100 and "more;" not in result.out


def test_usage(forebay, cache):
    image = cache()
    for words in (["--repair", "--json"], ["--repair", "--force"], ["--yes"]):
        assert forebay("check", *words, image).status == USAGE


@pytest.mark.parametrize("confirmed", [["--yes"], []])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_messages_never_go_to_the_device(command, forebay, broken, closed, confirmed):
    """An open takes the lowest free descriptor: that of standard output or error, if the caller has closed it."""
    before = broken.read_bytes()
    script = f'exec "$0" check --repair "$@" {closed}'
    subprocess.run(["sh", "-c", script, command, *confirmed, broken], stdin=subprocess.DEVNULL, timeout=20, check=False)
    after = broken.read_bytes()
    assert after[:4096] == before[:4096]
    if confirmed:
        assert forebay("check", broken).status == DONE
    else:
        assert after == before

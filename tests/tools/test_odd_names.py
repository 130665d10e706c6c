# SPDX-License-Identifier: GPL-2.0-only
"""Names with spaces, quotes and line ends: a command that a message proposes is one that a shell runs as it stands."""

import os
import re
import subprocess

import pytest

from conftest import DONE, FAILED, LEFT, MIB

NAMES = ["plain", "two words", "it's", "$(true)", "semi;colon", "-dash", "ä", "new\nline", "esc\x1b[31m", "c1\x85", "*", "~", "a=b"]


def words_of(command):
    """A command as a shell sees it."""
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], stdout=subprocess.PIPE, check=True)
    return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]


def same_file(word, name):
    return word in (name, f"./{name}")


@pytest.fixture(name="named", params=NAMES)
def named_fixture(request, tmp_path, monkeypatch):
    """Renames an image; the name is relative."""
    monkeypatch.chdir(tmp_path)

    def rename(image):
        os.rename(image, tmp_path / request.param)
        return request.param
    return rename


def in_ticks(text, begin):
    """The command between back ticks that begins so."""
    return words_of(re.search(rf"`({begin} [^`]*)`", text)[1])


def test_a_cache_that_holds_data(forebay, cache, named):
    name = named(cache("bind", "file 0 0 live", "page 0 0 7 out-of-sync"))
    for arguments, where in (["format"], "err"), (["status"], "out"):
        result = forebay(*arguments, "--", name)
        line = next(line for line in getattr(result, where).splitlines() if "mount -t forebay" in line)
        command = re.search(r"(mount -t forebay -o .* LOWER MOUNTPOINT)", line)[1]
        kind, option = words_of(command)[:2], words_of(command)[4]
        assert kind == ["mount", "-t"] and option.startswith("cache=") and same_file(option[6:], name)
    assert result.status == DONE


def test_a_damaged_cache(forebay, cache, named, patch, tables):
    image = cache("bind", "file 0 0 live")
    patch(image, tables(image)[0] + 20, b"\xff")
    name = named(image)
    shown = forebay("check", "--", name)
    assert shown.status == LEFT and same_file(in_ticks(shown.out, "forebay check --repair")[3], name)
    assert same_file(in_ticks(forebay("status", "--", name).out, "forebay check")[2], name)
    refused = forebay("format", "--", name)
    assert refused.status == FAILED and same_file(in_ticks(refused.err, "forebay check")[2], name)
    asked = forebay("check", "--repair", "--", name)
    command = re.search(r"Then: (.*)", asked.err)[1]
    assert same_file(words_of(command)[4], name)


def test_a_file_system(forebay, blank, named):
    image = blank(16 * MIB)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", image], check=True)
    name = named(image)
    result = forebay("format", "--", name)
    assert result.status == FAILED and same_file(in_ticks(result.err, "wipefs")[1], name)


def test_a_write_log(forebay, log, named, patch, log_offsets):
    image = log("bind 131072 TEST-one", "open 0", "write 8 8")
    name = named(image)
    result = forebay("writelog", "format", "--", name)
    command = re.search(r"To keep that: (.*), then", result.err)[1]
    assert result.status == FAILED and same_file(words_of(command)[5], name)
    assert same_file(in_ticks(forebay("check", "--", name).err, "forebay writelog check")[3], name)
    patch(name, log_offsets(name)[0] + 3, b"\xff")
    checked = forebay("writelog", "check", "--", name)
    command = re.search(r"(forebay writelog create --option .*)", checked.out)[1]
    assert checked.status == LEFT and same_file(words_of(command)[7], name)
    made = forebay("writelog", "create", "--", "name", name, name)
    assert made.status == FAILED and same_file(in_ticks(made.err, "losetup --find --show")[3], name)

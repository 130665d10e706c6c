# SPDX-License-Identifier: GPL-2.0-only
"""Images that old commits made, opened by today's core and today's command: README.md says what they hold.

Each folder beside this file has the images of a commit, and what that commit found in them. Today's code must find the
same. Further keys in the command's reports are allowed, and other sentences.
"""

import json
import subprocess
from pathlib import Path

import pytest

import images

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
PACKED = sorted(HERE.glob("*/*.img.xz"))
NAMES = [f"{path.parent.name}/{path.name.partition('.')[0]}" for path in PACKED]
SUPER, LINE, FILE_RECORD, PAGE_RECORD, FREE = 4096, 64, 64, 16, 0
DONE = 0


@pytest.fixture(scope="session")
def command():
    """Today's forebay command."""
    build = CHECKOUT / "build/tools"
    subprocess.run(["make", "-s", "-C", CHECKOUT / "tools", f"O={build}"], check=True)
    return build / "forebay"


@pytest.fixture(scope="session")
def reader():
    """read_image.c with today's core."""
    return images.build("read_image", CHECKOUT, CHECKOUT / "build/tests/read_image")


@pytest.fixture(params=PACKED, ids=NAMES)
def image(request, tmp_path):
    """An unpacked image."""
    return images.unpack(request.param, tmp_path / request.param.name.removesuffix(".xz"))


@pytest.fixture
def expected(request):
    """What the old commit found in the image."""
    packed = request.node.callspec.params["image"]
    return json.loads(packed.with_name(packed.name.replace(".img.xz", ".json")).read_text(encoding="utf-8"))


def contains(actual, part):
    """Whether a report has all of another one; it may have more keys."""
    if isinstance(part, dict):
        return isinstance(actual, dict) and all(key in actual and contains(actual[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(actual, list) and len(actual) == len(part) and all(map(contains, actual, part))
    return actual == part


def recovery_of(expected):
    """The part of an expectation that is about core. Once a file record had no time; its bytes were 0."""
    found = [({"time": 0} if record["what"] == "file" else {}) | record for record in expected["found"]]
    return {"found": found, "origin": expected["origin"]}


def test_there_are_images():
    assert {name.split("/")[1] for name in NAMES} >= {
        "cache-empty", "cache-used", "cache-cut", "cache-torn", "log-empty", "log-used", "log-plain", "log-cut",
        "cache-names", "cache-decided"}


def test_core_finds_the_same(reader, image, expected):
    """Records, generations, entries in order, and all data; nothing is written."""
    before = image.read_bytes()
    assert images.recovered(reader, image) == recovery_of(expected)
    assert image.read_bytes() == before


def test_the_command_says_the_same(command, image, expected):
    for verb, report in images.reported(command, image).items():
        assert contains(report, expected[verb]), f"forebay {verb} --json"


def test_opened_for_writing(reader, command, image, expected):
    """As a mount or a target opens it. A torn copy of the superblock is rewritten, and nothing else changes."""
    assert images.recovered(reader, image, "write") == recovery_of(expected)
    assert images.recovered(reader, image) == recovery_of(expected)
    report = images.reported(command, image)["check"]
    assert report["exit"] == DONE and report["json"]["clean"] and not report["json"]["findings"]


def places_that_count(found):
    """Offsets of bytes that say something, each with a name: one of each record and of each record's data."""
    head = found[0]
    yield from ((f"superblock {copy}", copy * SUPER + 48) for copy in (0, 1))
    for record in found[1:]:
        what, number = record["what"], record.get("number", 0)
        if what == "file":
            yield f"file {number}", head["file_table"] + FILE_RECORD * number + (4 if record["state"] == FREE else 24)
        elif what == "page":
            yield f"page {number}", head["page_table"] + PAGE_RECORD * number + 12
        elif what == "generation":
            yield f"generation {number}", head["table"] + LINE * number + 5
        elif what == "entry":
            chunk = head["data_start"] + (record["gen"] * head["nr_chunks"] + record["chunk"] + 1) * head["chunk_size"]
            yield f"chunk {record['gen']}.{record['chunk']}", chunk - LINE
            yield f"entry {record['order']}", chunk - LINE * (record["index"] + 2) + 9
        elif what == "names":
            yield from ((f"word {place}", record["words"] + place) for place in (0, 64))
        if record.get("bytes"):
            yield f"data at {record['data']}", record["data"] + record["bytes"] - 1


def flip(path, offset):
    """Changes a bit of an image; twice changes nothing."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def test_a_changed_byte_is_noticed(reader, command, image, expected):
    """The comparisons above fail for a copy with one changed byte, wherever a byte counts. A torn copy doesn't count."""
    torn = {f"superblock {finding['number']}" for finding in expected["check"]["json"]["findings"]}
    missed = []
    for place, offset in places_that_count(expected["found"]):
        flip(image, offset)
        if images.recovered(reader, image) == recovery_of(expected) and contains(images.reported(command, image), {
                verb: expected[verb] for verb in ("check", "status")}):
            missed.append(place)
        flip(image, offset)
    assert set(missed) == torn
    assert images.recovered(reader, image) == recovery_of(expected)


def test_a_cache_without_a_name_log_is_made_as_then(command, tmp_path):
    """Byte for byte: version 1 of the superblock has nothing behind its fields."""
    then = images.unpack(HERE / "4c15243/cache-empty.img.xz", tmp_path / "then.img")
    now = tmp_path / "now.img"
    with open(now, "wb") as opened:
        opened.truncate(then.stat().st_size)
    subprocess.run([command, "format", "--uuid", "0f0e0b0a-0000-4000-8000-000000000000", now], check=True, capture_output=True)
    assert now.read_bytes() == then.read_bytes()

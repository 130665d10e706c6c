# SPDX-License-Identifier: GPL-2.0-only
"""What status, set, latency and create say and do about mapped devices, with a folder in place of the kernel: see fake_mapper.c.

The tests in guest use the real kernel.
"""

import contextlib
import os
from pathlib import Path

import pytest

from conftest import DONE, FAILED, MIB, USAGE

# --- status ---

def test_status_of_a_log(mapper):
    mapper.log()
    shown, = mapper("writelog", "status", "--json").json
    idle, = mapper("writelog", "status", "--json", "259:0").json
    assert (shown["origin"], shown["origin_id"], shown["options"]) == ("/dev/mapper/one", "TEST-one", {"slots": 3})
    assert shown["uuid"] == idle["uuid"] and shown["volatile_log"] is False
    said = mapper("writelog", "status", "fast").out
    assert f"259:0, UUID {idle['uuid']}\n" in said and "/dev/mapper/one, 64.0 MiB, TEST-one\n" in said
    assert "slots " in said and "origin_id" not in said and "damaged" not in said and "memory" not in said


def test_status_says_that_a_log_is_volatile(mapper, tmp_path):
    mapper.log()
    emulated = tmp_path / "sys/dev/block/0:0/emu"       # the number of an image
    emulated.mkdir(parents=True)
    (emulated / "persistence").write_text("mem-ctrl\n")
    assert "The log is ordinary memory: what it holds goes with the power" in mapper("writelog", "status").out


def test_status_of_what_cannot_be_opened(mapper, tmp_path):
    mapper.log()
    (tmp_path / "259:0").unlink()
    result = mapper("writelog", "status", "--json", "fast")
    assert result.status == FAILED and not {"uuid", "volatile_log"} & set(result.json[0])


ORIGIN, MEDIUM, EITHER = "The origin refuses writes.", "cannot be written back", "or the log is damaged: dmesg says which"


@pytest.mark.parametrize("health, origin_errors, medium_errors, said", [
    ("error", 3, 0, ORIGIN), ("error", 0, 3, MEDIUM), ("error", 1, 1, EITHER), ("failed", 3, 0, ORIGIN), ("ok", 3, 0, None),
])
def test_status_tells_errors_apart(mapper, health, origin_errors, medium_errors, said):
    mapper.log(health, origin_errors=origin_errors, medium_errors=medium_errors)
    out = mapper("writelog", "status").out
    assert {text for text in (ORIGIN, MEDIUM, EITHER) if text in out} == ({said} if said else set())
    assert not said or f"  {'Writes are' if said == ORIGIN else 'What is whole is'} kept in the log, safe from a power cut" in out
    assert ("tried again" in out) == bool(said)
    assert ("refused once the log is full" in out) == (health == "failed")
    assert ("The log has been found damaged" in out) == bool(medium_errors)


def test_status_says_how_many_blocks_are_refused(mapper):
    """Only single blocks are refused, not all writes."""
    mapper.log("error", origin_errors=3, refused=2)
    out = mapper("writelog", "status").out
    assert "The origin refuses 2 blocks; dmesg says which. The others are written back." in out
    assert ORIGIN not in out and "kept in the log, safe from a power cut" in out


def test_status_of_a_log_whose_memory_is_broken(mapper):
    """The origin isn't to blame."""
    mapper.log("failed", medium_errors=15, broken=15)
    out = mapper("writelog", "status").out
    assert "can't hold what is written: writes are refused" in out and "error_timeout" not in out and MEDIUM not in out
    mapper.log("failed", origin_errors=3, broken=14)
    assert ORIGIN in mapper("writelog", "status").out


def test_status_warns_of_lost_reads(mapper):
    mapper.log(lost_reads=1)
    assert "Reads have failed" in mapper("writelog", "status").out


def test_a_short_status_is_strange(mapper):
    mapper.cache()
    assert mapper("transit", "status", "--json").json[0]["values"] == {"refused": 0, "evicted": 0}
    mapper.device("quick", "forebay-transit", "ok transit 3/4096", "253:0")
    result = mapper("transit", "status")
    assert result.status == FAILED and "quick has a status or table that this command does not understand" in result.err


# --- set ---

def test_set(mapper):
    mapper.log()
    mapper.cache()
    assert mapper("writelog", "set", "fast", "depth=32").status == DONE
    assert mapper("transit", "set", "quick", "bypass=off").status == DONE
    assert mapper.journal() == ["message fast set depth 32", "message quick set bypass off"]


def test_set_what_fits_only_together(mapper):
    mapper.log()
    mapper.answer("message fast set low_mark 70", "ERANGE", times=1)
    result = mapper("writelog", "set", "fast", "low_mark=70", "high_mark=80")
    assert (result.status, result.err) == (DONE, "")
    low = "message fast set low_mark 70"
    assert mapper.journal() == [low, "message fast set high_mark 80", low]


def test_set_what_is_refused(mapper):
    mapper.log()
    mapper.answer("message fast set depth 0", "ERANGE")
    result = mapper("writelog", "set", "fast", "depth=0", "high_mark=80")
    assert result.status == FAILED and "fast: depth=0: invalid value" in result.err and "high_mark" not in result.err
    assert "message fast set high_mark 80" in mapper.journal()
    result = mapper("writelog", "set", "fast", "depth=3", "slots=3")
    assert result.status == USAGE and "slots=3: only create can set this option" in result.err
    result = mapper("transit", "set", "quick", "depth=3")
    assert result.status == USAGE and "unknown option; the options are workers, eager_eviction, bypass\n" in result.err
    assert "message fast set depth 3" not in mapper.journal()


# --- latency ---

def test_latency(mapper):
    mapper.log()
    mapper.answer("message fast latency show", text="write 30000 <2048:8 <16384:1 <32768:1\nspace\ncopy 100 <128:1")
    assert mapper("writelog", "latency", "fast", "on").status == DONE
    shown = mapper("writelog", "latency", "--json", "fast").json
    assert shown == [
        {"step": "write", "ns": 30000, "count": 10, "bins": [[2048, 8], [16384, 1], [32768, 1]]},
        {"step": "space", "ns": 0, "count": 0, "bins": []}, {"step": "copy", "ns": 100, "count": 1, "bins": [[128, 1]]}]
    rows = [line.split() for line in mapper("writelog", "latency", "fast").out.splitlines()[1:]]
    assert rows == [["write", "10", "3.0", "2.0", "32.8", "32.8"], ["space", "0"], ["copy", "1", "0.1", "0.1", "0.1", "0.1"]]
    assert mapper.journal()[0] == "message fast latency on"
    result = mapper("transit", "latency", "fast")
    assert result.status == FAILED and "fast is not a device with a transit cache" in result.err
    assert mapper("writelog", "latency", "fast", "maybe").status == USAGE


def test_latency_of_which_half_was_short(mapper):
    """The median is the fifth of ten values; the 99th percentile of a hundred is the last but one."""
    mapper.log()
    mapper.answer("message fast latency show", text="copy 100 <128:5 <256:5\nindex 100 <128:99 <1024:1\nread 100 <128:98 <1024:2")
    rows = [line.split()[3:] for line in mapper("writelog", "latency", "fast").out.splitlines()[1:]]
    assert rows == [["0.1", "0.3", "0.3"], ["0.1", "0.1", "1.0"], ["0.1", "1.0", "1.0"]]


def test_a_long_answer(mapper):
    mapper.log()
    steps = [f"step{i}" for i in range(60)]
    bins = "".join(f" <{1 << shift}:1" for shift in range(6, 20))
    mapper.answer("message fast latency show", text="\n".join(f"{step} 9{bins}" for step in steps))
    shown = mapper("writelog", "latency", "--json", "fast").json
    assert [one["step"] for one in shown] == steps and {one["count"] for one in shown} == {14}


# --- create ---

def test_a_name_that_is_taken(mapper):
    mapper.log()
    for verb in (["writelog", "create", "fast", "/dev/null", "259:0"], ["transit", "create", "/dev/mapper/fast", "/dev/null"]):
        result = mapper(*verb)
        assert result.status == FAILED and "fast: a mapped device of that name already exists" in result.err


def test_what_no_device_can_be_made_of(mapper):
    for verb in (["writelog", "create", "new", "259:0", "259:0"], ["transit", "create", "new", "259:0"]):
        result = mapper(*verb)
        assert result.status == FAILED and "it is a file, not a block device" in result.err
        assert "`losetup --find --show 259:0`" in result.err
    result = mapper("transit", "create", "new", "/dev/null")
    assert result.status == FAILED and "/dev/null cannot be below a cache: it is not a block device" in result.err


def any_block_device():
    """An unused loop device that may be opened. It is neither read nor written."""
    for path in sorted(Path("/dev").glob("loop[0-9]*")):
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
            return path
    return None


BLOCK = any_block_device()
needs_block_device = pytest.mark.skipif(not BLOCK, reason="needs a loop device that may be opened, which takes root")


@needs_block_device
def test_create(mapper):
    number = os.stat(BLOCK).st_rdev
    line = f"create new 0 0 forebay-transit {os.major(number)}:{os.minor(number)} 2 policy lru"
    assert mapper("transit", "create", "--option", "policy=lru", "new", BLOCK).out == (
        f"/dev/mapper/new: {BLOCK} below a transit cache\n")
    assert mapper.journal() == [line]
    mapper.answer(line, "EINVAL")
    result = mapper("transit", "create", "--option", "policy=lru", "new", BLOCK)
    assert result.status == FAILED and "The kernel has no target forebay-transit: `modprobe dm-forebay-transit`" in result.err
    installed = mapper.folder.parent / "lib/modules/9.9.9"
    installed.mkdir(parents=True)
    (installed / "modules.dep").write_text("updates/dm-forebay-transit.ko:\n")
    result = mapper("transit", "create", "--option", "policy=lru", "new", BLOCK)
    assert "and the modules are for 9.9.9: reboot into 9.9.9." in result.err and "modprobe" not in result.err
    (mapper.folder / "targets").write_text("forebay-transit\n")
    result = mapper("transit", "create", "--option", "policy=lru", "new", BLOCK)
    assert result.status == FAILED and "dmesg says why the kernel refused" in result.err


@needs_block_device
@pytest.mark.parametrize("size, options, fits", [
    (MIB, ["4096"], None), (MIB + 512, ["4096"], 512), (MIB + 3072, ["2048"], 1024), (MIB, ["8192"], None),
    (MIB + 4096, ["8192"], 4096), (3 * MIB, ["1048576", "2097152"], 4096),
    (MIB + 512, ["3000"], None), (MIB + 512, ["x"], None),          # the target refuses these
    (MIB + 512, ["4096", "512"], None), (MIB + 512, ["512", "4096"], 512),
])
def test_which_block_size_fits(mapper, size, options, fits):
    """The log is an image, so `create` ends after the check of the block size."""
    mapper.environment["FAKE_BYTES"] = str(size)
    result = mapper("writelog", "create", *(f"--option=block_size={option}" for option in options),
                    "--any-origin", "new", BLOCK, "259:0")
    assert result.status == FAILED and mapper.journal() == []
    assert (f"The largest that fits: --option block_size={fits}." in result.err) == bool(fits)
    assert ("no multiple of block_size" in result.err) == bool(fits)
    assert ("259:0 is an image" in result.err) == (not fits)


@needs_block_device
@pytest.mark.parametrize("name", ["fast", "quick"])
def test_status_of_a_node_is_that_of_the_device_itself(mapper, tmp_path, name):
    """The device itself is shown, not those below or above it. The node, /dev/dm-3, is a loop device here."""
    number = os.stat(BLOCK).st_rdev
    numbers, node = tmp_path / f"sys/dev/block/{os.major(number)}:{os.minor(number)}", tmp_path / "sys/class/block/dm-3"
    numbers.symlink_to("../../devices/dm-3")
    (node / "dm").mkdir(parents=True)
    (node / "dm/name").write_text(f"{name}\n")
    mapper.log()
    mapper.cache()
    noun = {"fast": "writelog", "quick": "transit"}[name]
    shown = mapper(noun, "status", "--json", BLOCK).json
    assert [one["name"] for one in shown] == [name]


@needs_block_device
def test_a_name_comes_first(mapper, tmp_path, monkeypatch):
    """Even if a device with this name exists, and is below another cache."""
    number = os.stat(BLOCK).st_rdev
    numbers, holder = tmp_path / f"sys/dev/block/{os.major(number)}:{os.minor(number)}", tmp_path / "sys/class/block/dm-3"
    numbers.symlink_to("../../devices/below")
    (tmp_path / "sys/class/block/below/holders/dm-3").mkdir(parents=True)
    (holder / "dm").mkdir(parents=True)
    (holder / "dm/name").write_text("other\n")
    mapper.cache()
    mapper.device("other", "forebay-transit", "ok transit 1/4096 4 refused 0 evicted 0", "253:0 2 workers 3")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    os.symlink(BLOCK, "quick")
    assert [one["name"] for one in mapper("transit", "status", "--json", "quick", BLOCK).json] == ["quick", "other"]


@needs_block_device
@pytest.mark.parametrize("name, advice", [
    ("fast", "`forebay writelog status fast` shows it"), ("quick", "`forebay transit remove quick` removes it"),
    ("other", "`dmsetup table other` shows what it is"), (None, "shows what is made of it"),
])
def test_what_uses_a_device(mapper, tmp_path, name, advice):
    number, mounts = os.stat(BLOCK).st_rdev, tmp_path / "proc/self/mountinfo"
    numbers, holder = tmp_path / f"sys/dev/block/{os.major(number)}:{os.minor(number)}", tmp_path / "sys/class/block/dm-3"
    numbers.symlink_to("../../devices/below")
    (tmp_path / "sys/class/block/below/holders/dm-3").mkdir(parents=True)
    mounts.parent.mkdir(parents=True)
    mounts.touch()
    mapper.log()
    mapper.cache()
    if name:
        (holder / "dm").mkdir(parents=True)
        (holder / "dm/name").write_text(f"{name}\n")
    held = os.open(BLOCK, os.O_RDONLY | os.O_EXCL)
    try:
        results = [mapper("writelog", "check", BLOCK), mapper("transit", "create", "new", BLOCK)]
    finally:
        os.close(held)
    for result in results:
        assert result.status == FAILED and advice in result.err
        assert f"{BLOCK} is used by {f'/dev/mapper/{name} (dm-3)' if name else '/dev/dm-3'}\n" in result.err
    assert (mapper("writelog", "status", "--json", BLOCK).status == DONE) == (name == "fast")
    assert (mapper("transit", "status", "--json", BLOCK).status == DONE) == (name == "quick")


def test_a_node_without_a_name(mapper):
    """The folder of the nodes is not a device."""
    mapper.log()
    for words in ["flush"], ["status"], ["latency"]:
        result = mapper("writelog", *words, "/dev/mapper/")
        assert result.status == FAILED and result.err.startswith(f"forebay writelog {words[0]}: /dev/mapper/ is ")

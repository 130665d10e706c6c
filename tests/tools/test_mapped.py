# SPDX-License-Identifier: GPL-2.0-only
"""What the verbs say and do about mapped devices, with a folder in place of the kernel: see fake_mapper.c.

What the kernel really does with it is asked by the tests in guest.
"""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BUILD, CHECKOUT, DONE, FAILED, LEFT, MIB, USAGE

ERRNO = {"EINTR": 4, "EIO": 5, "ENXIO": 6, "EBUSY": 16, "EINVAL": 22, "ERANGE": 34}
LOG_TABLE = "253:0 259:0 4 slots 3 origin_id " + b"TEST-one".hex().ljust(128, "0")


@pytest.fixture(scope="session")
def fake_mapper():
    """The library that stands in for libdevmapper."""
    library = BUILD / "fake_mapper.so"
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library,
                    CHECKOUT / "tests/tools/fake_mapper.c"], check=True)
    return library


class Mapper:
    """The folder in place of the kernel, and the command with it."""

    def __init__(self, folder, library, forebay):
        self.folder, self.forebay = folder / "mapper", forebay
        self.environment = {"LD_PRELOAD": str(library), "FAKE_MAPPER": str(self.folder), "FOREBAY_SYSROOT": str(folder)}
        (self.folder / "answers").mkdir(parents=True)
        origin, numbers = folder / "sys/devices/dm-0", folder / "sys/dev/block/253:0"
        (origin / "dm").mkdir(parents=True)
        (origin / "dm/name").write_text("one\n")
        numbers.parent.mkdir(parents=True)
        numbers.symlink_to(origin)

    def device(self, name, target, status, table):
        """One that is in use."""
        for file, text in {"target": target, "status": status, "table": table}.items():
            (self.folder / name).mkdir(exist_ok=True)
            (self.folder / name / file).write_text(text)

    def log(self, health="ok", mode="write", used=3, options="slots 3", **values):
        """A write log of 16 generations of 1 MiB, called fast."""
        values = {"regions": 12, "writeback_sectors": 0, "superseded_sectors": 0, "origin_errors": 0, "medium_errors": 0,
                  "lost_reads": 0} | values
        pairs = " ".join(f"{key} {value}" for key, value in values.items())
        self.device("fast", "forebay-wlog", f"{health} {mode} {used}/16 {used * MIB}/{16 * MIB} {2 * len(values)} {pairs}",
                    LOG_TABLE.replace("4 slots 3", f"{2 + len(options.split())} {options}"))

    def cache(self, used=12, evicted=0):
        """A transit cache of 4096 slots, called quick."""
        self.device("quick", "forebay-transit", f"ok transit {used}/4096 4 refused 0 evicted {evicted}", "253:0 2 workers 3")

    def answer(self, line, error=0, times=None, seconds=0, text=""):
        """What comes of it, when the kernel is told that."""
        times = (9 if error else 0) if times is None else times
        (self.folder / "answers" / line).write_text(f"{ERRNO[error] if error else 0} {times} {seconds} {text}")

    def journal(self):
        """What the kernel was told."""
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def __call__(self, *arguments):
        return self.forebay(*arguments, **self.environment)


@pytest.fixture
def mapper(fake_mapper, forebay, tmp_path, monkeypatch, log):
    """Devices there aren't; the write log's log is an image that is called as a device with an unknown number is."""
    monkeypatch.chdir(tmp_path)
    os.link(log("bind 131072 TEST-one", "open 0", "write 8 8"), "259:0")
    return Mapper(tmp_path, fake_mapper, forebay)


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


def test_status_warns_of_lost_reads(mapper):
    mapper.log(lost_reads=1)
    assert "Reads have failed" in mapper("writelog", "status").out


def test_a_short_status_is_strange(mapper):
    mapper.cache()
    assert mapper("transit", "status", "--json").json[0]["values"] == {"refused": 0, "evicted": 0}
    mapper.device("quick", "forebay-transit", "ok transit 3/4096", "253:0")
    result = mapper("transit", "status")
    assert result.status == FAILED and "quick has a status or a table of a kind that is not known here" in result.err


# --- flush, remove, resume ---

def test_flush(mapper):
    mapper.log()
    mapper.cache()
    assert mapper("writelog", "flush", "fast").out == "fast: everything is on the origin\n"
    assert mapper("writelog", "flush", "--cleaner", "--quiet", "fast").out == ""
    assert mapper("transit", "flush", "/dev/mapper/quick").out == "quick: everything is on the device\n"
    assert mapper("transit", "flush", "--quiet", "quick").out == ""
    assert mapper.journal() == ["message fast flush", "message fast cleaner", "message quick flush", "message quick flush"]


def begin(command, mapper, *words):
    return subprocess.Popen([command, *words], env={**os.environ, **mapper.environment}, text=True, stderr=subprocess.PIPE)


@pytest.mark.parametrize("words, errors, size", [
    (["flush"], {}, "1.5 MiB"),
    (["flush"], {"origin_errors": 3}, "3.0 MiB"), (["flush"], {"medium_errors": 3}, "3.0 MiB"),     # what was refused was counted
    (["flush", "--cleaner"], {}, "3.0 MiB"), (["remove"], {}, "3.0 MiB"),       # others were writing
])
def test_progress_goes_by_what_was_written(command, mapper, words, errors, size):
    """Of a log it was whole generations: nothing, and then 6 GiB at once. It still is where the counters tell less."""
    mapper.log(used=3, writeback_sectors=100, **dict.fromkeys(errors, 2))
    mapper.answer(f"message fast {'flush' if words == ['flush'] else 'cleaner'}", seconds=3)
    with begin(command, mapper, "writelog", *words, "fast") as flushing:
        time.sleep(1)
        mapper.log(used=3, writeback_sectors=100 + 2048, superseded_sectors=1024, **errors)
        assert flushing.communicate(timeout=20)[1] == f"fast: at most {size} left\n"


def test_progress_of_a_cache_is_what_it_holds(command, mapper):
    """It evicts what is written meanwhile, too."""
    mapper.cache(used=12, evicted=100)
    mapper.answer("message quick flush", seconds=3)
    with begin(command, mapper, "transit", "flush", "quick") as flushing:
        time.sleep(1)
        mapper.cache(used=5, evicted=120)
        assert flushing.communicate(timeout=20)[1] == "quick: at most 5 blocks left\n"


def test_what_is_left_was_counted_as_passed_on(command, mapper):
    """Before the device refused it."""
    mapper.log(writeback_sectors=100)
    mapper.cache(evicted=100)
    for noun, name, size in ("writelog", "fast", "3.0 MiB"), ("transit", "quick", "12 blocks"):
        mapper.answer(f"message {name} flush", "EIO", seconds=1)
        with begin(command, mapper, noun, "flush", name) as flushing:
            time.sleep(0.5)
            mapper.log(writeback_sectors=100 + 6144)
            mapper.cache(evicted=112)
            assert f"At most {size} left in the " in flushing.communicate(timeout=20)[1]


@pytest.mark.parametrize("verb, message, size, rest", [
    (["writelog", "flush", "fast"], "fast flush", "3.0 MiB", "in the log; nothing is lost"),
    (["writelog", "remove", "fast"], "fast cleaner", "3.0 MiB", "in the log; nothing is lost"),
    (["transit", "flush", "quick"], "quick flush", "12 blocks", "in the cache, and tried again"),
    (["transit", "remove", "quick"], "quick flush", "12 blocks", "in the cache, and tried again"),
])
@pytest.mark.parametrize("error", ["EIO", "EINTR", "EBUSY", "ENXIO"])
def test_what_is_left(mapper, verb, message, size, rest, error):
    mapper.log()
    mapper.cache()
    mapper.answer(f"message {message}", error)
    result = mapper(*verb)
    tried = error in ("EIO", "EINTR")
    assert result.status == (LEFT if tried else FAILED) and not result.out
    assert ("not everything could be written back" in result.err) == tried
    assert (f"At most {size} left {rest}" in result.err) == tried
    assert ("Is it suspended? `dmsetup resume" in result.err) == (error == "EBUSY")
    assert ("--no-flush" in result.err) == ("remove" in verb)
    assert not any(line.startswith("remove") for line in mapper.journal())


def test_interrupted(command, mapper):
    mapper.cache()
    mapper.answer("message quick flush", seconds=20)
    with subprocess.Popen([command, "transit", "remove", "quick"], env={**os.environ, **mapper.environment}, text=True,
                          stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as removing:
        # A job in the background of a script has SIGINT ignored, and so would the command.
        while not mapper.journal():
            time.sleep(0.05)
        removing.send_signal(signal.SIGINT)
        said = removing.communicate(timeout=10)[1]
    assert removing.returncode == LEFT and "Interrupted system call" in said


def test_interrupted_before_signals_are_passed_on(mapper):
    """Both processes end then: the output's end is seen, and the first one says what has come of it."""
    mapper.cache()
    mapper.answer("message quick flush", seconds=30)
    mapper.environment["FAKE_SIGNAL"] = str(int(signal.SIGTERM))
    result = mapper("transit", "flush", "quick")
    assert result.status == LEFT and "Interrupted system call" in result.err


def test_killed(command, mapper):
    """Who sends the message goes, too: nobody has the output open any more."""
    mapper.cache()
    mapper.answer("message quick flush", seconds=30)
    with begin(command, mapper, "transit", "flush", "quick") as flushing:
        while not mapper.journal():
            time.sleep(0.05)
        flushing.kill()
        flushing.communicate(timeout=10)


def test_remove_sees_what_a_late_writer_left(command, mapper):
    """Who has it open is waited for."""
    mapper.log(used=0)
    (mapper.folder / "fast/open").touch()
    with subprocess.Popen([command, "writelog", "remove", "--no-flush", "fast"], env={**os.environ, **mapper.environment},
                          text=True, stdout=subprocess.PIPE) as removing:
        time.sleep(0.5)
        mapper.log(used=1)
        (mapper.folder / "fast/open").unlink()
        assert "259:0 holds at most 1.0 MiB that /dev/mapper/one lacks" in removing.communicate(timeout=10)[0]


def test_remove_says_what_stays(mapper):
    mapper.log()
    said = mapper("writelog", "remove", "--no-flush", "fast").out
    assert "fast: removed; 259:0 holds at most 3.0 MiB that /dev/mapper/one lacks\n" in said
    assert "Don't mount or change /dev/mapper/one" in said and "    forebay writelog create --option slots=3 fast /dev/mapper/one 259:0\n" in said
    mapper.log(options="on_damage skip depth 9")
    said = mapper("writelog", "remove", "--no-flush", "fast").out
    assert " create --option on_damage=skip --option depth=9 fast /dev/mapper/one 259:0\n" in said
    mapper.log(used=0, options="")
    said = mapper("writelog", "remove", "--no-flush", "fast").out
    assert "fast: removed; 259:0 was empty just before\n" in said and "`forebay writelog status 259:0` tells" in said
    mapper.log()
    assert mapper("writelog", "remove", "--no-flush", "--quiet", "fast").out == ""
    mapper.cache()
    assert mapper("transit", "remove", "--quiet", "quick").out == ""
    assert mapper.journal()[-2:] == ["message quick flush", "remove quick"]


def test_a_cleaner_logs_again(mapper):
    mapper.log(mode="cleaner")
    assert (mapper("writelog", "resume", "fast").out) == "fast: logs writes again\n"
    assert mapper.journal() == [f"reload fast 0 131072 forebay-wlog {LOG_TABLE}", "resume fast"]


def test_resume_of_others(mapper):
    mapper.log()
    result = mapper("writelog", "resume", "fast")
    assert result.status == DONE and "nothing to do" in result.out
    mapper.log(mode="cleaning")
    result = mapper("writelog", "resume", "fast")
    assert result.status == FAILED and "is being written back" in result.err
    mapper.log(mode="cleaner")
    (mapper.folder / "fast/suspended").touch()
    result = mapper("writelog", "resume", "fast")
    assert result.status == FAILED and "`dmsetup resume fast`" in result.err
    assert mapper.journal() == []


@pytest.mark.parametrize("step, advice", [
    (f"reload fast 0 131072 forebay-wlog {LOG_TABLE}", "It goes on as it was"), ("resume fast", "It may be suspended now"),
])
def test_resume_that_fails(mapper, step, advice):
    mapper.log(mode="cleaner")
    mapper.answer(step, "EIO")
    result = mapper("writelog", "resume", "fast")
    assert result.status == FAILED and advice in result.err


def test_a_cleaner_that_stays_says_how_it_ends(mapper):
    mapper.log(mode="cleaner")
    mapper.answer("remove fast", "EBUSY")
    result = mapper("writelog", "remove", "fast")
    assert result.status == FAILED and "fast is in use" in result.err
    assert "until `forebay writelog resume fast`." in result.err


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
    assert result.status == FAILED and "fast: depth=0: it can't have this value" in result.err and "high_mark" not in result.err
    assert "message fast set high_mark 80" in mapper.journal()
    result = mapper("writelog", "set", "fast", "depth=3", "slots=3")
    assert result.status == USAGE and "slots=3: this can be set by create alone" in result.err
    result = mapper("transit", "set", "quick", "depth=3")
    assert result.status == USAGE and "no such option; there are workers, eager_eviction, bypass\n" in result.err
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
    assert result.status == FAILED and "fast is no device with a transit cache" in result.err
    assert mapper("writelog", "latency", "fast", "maybe").status == USAGE


def test_latency_of_which_half_was_short(mapper):
    """The median is the fifth of ten, the 99th of a hundred the last but one."""
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
        assert result.status == FAILED and "fast: there is a mapped device of that name already" in result.err


def test_what_no_device_can_be_made_of(mapper):
    for verb in (["writelog", "create", "new", "259:0", "259:0"], ["transit", "create", "new", "259:0"]):
        result = mapper(*verb)
        assert result.status == FAILED and "it is a file, not a block device" in result.err
        assert "`losetup --find --show 259:0`" in result.err
    result = mapper("transit", "create", "new", "/dev/null")
    assert result.status == FAILED and "/dev/null cannot be below a cache: it is no block device" in result.err


def any_block_device():
    """One that may be opened, whatever it is: an unused loop device will do. Nothing is read from it, or written."""
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
    (mapper.folder / "targets").write_text("forebay-transit\n")
    result = mapper("transit", "create", "--option", "policy=lru", "new", BLOCK)
    assert result.status == FAILED and "dmesg tells what the kernel had against it" in result.err


@needs_block_device
@pytest.mark.parametrize("size, options, fits", [
    (MIB, ["4096"], None), (MIB + 512, ["4096"], 512), (MIB + 3072, ["2048"], 1024), (MIB, ["8192"], None),
    (MIB + 4096, ["8192"], 4096), (3 * MIB, ["1048576", "2097152"], 4096),
    (MIB + 512, ["3000"], None), (MIB + 512, ["x"], None),          # the target refuses these
    (MIB + 512, ["4096", "512"], None), (MIB + 512, ["512", "4096"], 512),
])
def test_which_block_size_fits(mapper, size, options, fits):
    """The log is an image, so it goes no further."""
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
    """Not of what it was made of, nor of what was made of it: /dev/dm-3, here the block device."""
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
    """Though there is a device that is called so, and is below another cache."""
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
    ("fast", "`forebay writelog status fast` shows it"), ("quick", "`forebay transit remove quick` takes it away"),
    ("other", "`dmsetup table other` shows what it is"), (None, "shows what is made of it"),
])
def test_who_uses_a_device(mapper, tmp_path, name, advice):
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

# SPDX-License-Identifier: GPL-2.0-only
"""What flush, remove and resume say and do about mapped devices, with a folder in place of the kernel: see fake_mapper.c."""

import os
import signal
import subprocess
import time

import pytest

from conftest import DONE, FAILED, LEFT, LOG_TABLE


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


def until_told(mapper, name):
    """Waits until the child process has sent the message. The command has read the status before."""
    while not any(line.startswith(f"message {name} ") for line in mapper.journal()):
        time.sleep(0.02)


def progress(mapper, flushing):
    """What it says after two seconds, on a busy host perhaps more than once; then the message is answered."""
    said = flushing.stderr.readline()
    (mapper.folder / "hold").unlink()
    said += flushing.communicate(timeout=60)[1]
    return set(said.splitlines())


@pytest.mark.parametrize("words, errors, size", [
    (["flush"], {}, "1.5 MiB"),
    (["flush"], {"origin_errors": 3}, "3.0 MiB"), (["flush"], {"medium_errors": 3}, "3.0 MiB"),     # the counter includes refused writes
    (["flush", "--cleaner"], {}, "3.0 MiB"), (["remove"], {}, "3.0 MiB"),       # newer writes are counted, too
])
def test_progress_goes_by_what_was_written(command, mapper, words, errors, size):
    """Whole generations become free at once, up to 6 GiB; counters show more. Where these are not reliable, generations are shown."""
    mapper.log(used=3, writeback_sectors=100, **dict.fromkeys(errors, 2))
    mapper.answer(f"message fast {'flush' if words == ['flush'] else 'cleaner'}")
    (mapper.folder / "hold").touch()
    with begin(command, mapper, "writelog", *words, "fast") as flushing:
        until_told(mapper, "fast")
        mapper.log(used=3, writeback_sectors=100 + 2048, superseded_sectors=1024, **errors)
        assert progress(mapper, flushing) == {f"fast: at most {size} left"}


def test_progress_of_a_cache_is_what_it_holds(command, mapper):
    """It evicts newer writes, too, so the number of evicted blocks is no progress."""
    mapper.cache(used=12, evicted=100)
    mapper.answer("message quick flush")
    (mapper.folder / "hold").touch()
    with begin(command, mapper, "transit", "flush", "quick") as flushing:
        until_told(mapper, "quick")
        mapper.cache(used=5, evicted=120)
        assert progress(mapper, flushing) == {"quick: at most 5 blocks left"}


def test_what_is_left_was_counted_as_passed_on(command, mapper):
    """Writes that the device refused were counted before."""
    mapper.log(writeback_sectors=100)
    mapper.cache(evicted=100)
    for noun, name, size in ("writelog", "fast", "3.0 MiB"), ("transit", "quick", "12 blocks"):
        mapper.answer(f"message {name} flush", "EIO")
        (mapper.folder / "hold").touch()
        with begin(command, mapper, noun, "flush", name) as flushing:
            until_told(mapper, name)
            mapper.log(writeback_sectors=100 + 6144)
            mapper.cache(evicted=112)
            (mapper.folder / "hold").unlink()
            assert f"At most {size} left in the " in flushing.communicate(timeout=60)[1]


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
    mapper.answer("message quick flush", seconds=120)
    with subprocess.Popen([command, "transit", "remove", "quick"], env={**os.environ, **mapper.environment}, text=True,
                          stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as removing:
        # A background job of a script ignores SIGINT, and the command would inherit that.
        while not mapper.journal():
            time.sleep(0.05)
        removing.send_signal(signal.SIGINT)
        said = removing.communicate(timeout=60)[1]
    assert removing.returncode == LEFT and "Interrupted system call" in said


def test_interrupted_before_signals_are_passed_on(mapper):
    """Both processes end, so the output ends, and the first one reports the result."""
    mapper.cache()
    mapper.answer("message quick flush", seconds=120)
    mapper.environment["FAKE_SIGNAL"] = str(int(signal.SIGTERM))
    result = mapper("transit", "flush", "quick")
    assert result.status == LEFT and "Interrupted system call" in result.err


def test_killed(command, mapper):
    """The child that sends the message ends, too: no process has the output open any more."""
    mapper.cache()
    mapper.answer("message quick flush", seconds=120)
    with begin(command, mapper, "transit", "flush", "quick") as flushing:
        while not mapper.journal():
            time.sleep(0.05)
        flushing.kill()
        flushing.communicate(timeout=60)


def test_remove_sees_what_a_late_writer_left(command, mapper):
    """The command waits until the writer has closed the device."""
    mapper.log(used=0)
    (mapper.folder / "fast/open").touch()
    with subprocess.Popen([command, "writelog", "remove", "--no-flush", "fast"], env={**os.environ, **mapper.environment},
                          text=True, stdout=subprocess.PIPE) as removing:
        time.sleep(0.5)
        mapper.log(used=1)
        (mapper.folder / "fast/open").unlink()
        assert "259:0 holds at most 1.0 MiB that /dev/mapper/one lacks" in removing.communicate(timeout=60)[0]


def test_remove_says_what_stays(mapper):
    mapper.log()
    said = mapper("writelog", "remove", "--no-flush", "fast").out
    assert "fast: removed; 259:0 holds at most 3.0 MiB that /dev/mapper/one lacks\n" in said
    assert "Don't mount or change /dev/mapper/one" in said
    assert "    forebay writelog create --option slots=3 fast /dev/mapper/one LOG\n    LOG was 259:0, which is gone.\n" in said
    mapper.log(options="on_damage skip depth 9")
    said = mapper("writelog", "remove", "--no-flush", "fast").out
    assert " create --option on_damage=skip --option depth=9 fast /dev/mapper/one LOG\n" in said
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
    (f"reload fast 0 131072 forebay-wlog {LOG_TABLE}", "It keeps its old table"), ("resume fast", "It may be suspended now"),
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


def test_commands_for_what_is_left_quote_names(mapper, tmp_path):
    """The origin is a mapped device with a space in its name."""
    (tmp_path / "sys/devices/dm-0/dm/name").write_text("my disk\n")
    mapper.log(used=3)
    said = mapper("writelog", "remove", "--no-flush", "fast").out
    assert "forebay writelog create --option slots=3 fast '/dev/mapper/my disk' LOG\n" in said


def test_names_of_devices_cannot_steer_the_terminal(mapper, tmp_path):
    """Neither those of mapped devices nor that of the disk below."""
    (tmp_path / "sys/devices/dm-0/dm/name").write_text("my\x1b[32mdisk\n")
    mapper.log()
    mapper.cache()
    names = {"fast": "f\x1b[31m", "quick": "q\x1b[31m"}
    for name, odd in names.items():
        (mapper.folder / name).rename(mapper.folder / odd)
    for words in ["writelog", "status"], ["writelog", "flush"], ["writelog", "resume"], ["writelog", "latency"], ["transit", "status"], \
            ["transit", "flush"], ["writelog", "remove", "--no-flush"], ["transit", "remove", "--no-flush"]:
        result = mapper(*words, names["fast" if words[0] == "writelog" else "quick"])
        assert result.status == DONE and "\x1b" not in result.out + result.err, words
        assert "?[31m" in result.out or words[1] == "latency"

# SPDX-License-Identifier: GPL-2.0-only
"""forebay writelog with real devices. Runs in the test machine, as test_devices.py does:

    vm/run --pmem 128M -- /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/tools/guest
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from conftest import CHECKOUT, DONE, FAILED, LEFT, MIB
from machine import needs, sh

PMEM, NVME = Path("/dev/pmem0"), Path("/dev/nvme0n1")
FAST = Path("/dev/mapper/fast")
SECTORS = 64 * MIB // 512       # of an origin
SLOW = 2000                     # ms that a write takes: several times as long as a command takes to start on a busy host
AT = 1024 * MIB // 512          # where origins begin on the SSD: test_devices.py uses what is before

pytestmark = needs(PMEM)


@pytest.fixture(scope="module", autouse=True)
def origins():
    """Two origins that keep their identity: mapped devices with UUIDs."""
    for number, name in enumerate(("one", "two")):
        sh("dmsetup", "create", name, "--uuid", f"TEST-{name}", "--table", f"0 {SECTORS} linear {NVME} {AT + number * SECTORS}")
    yield
    for name in ("one", "two"):
        sh("dmsetup", "remove", name)


@pytest.fixture
def forebay_log(forebay):
    """The writelog verbs alone."""
    return lambda *arguments, **environment: forebay("writelog", *arguments, **environment)


@pytest.fixture(scope="session")
def vanish(tmp_path_factory):
    """vanish(n): an environment in which the mapped device is gone when its target is asked for the nth time."""
    library = tmp_path_factory.mktemp("vanish") / "vanish.so"
    sh("gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, CHECKOUT / "tests/tools/vanish.c")
    return lambda look: {"LD_PRELOAD": library, "VANISH_AT": str(look)}


@pytest.fixture
def log(forebay_log):
    """An empty log on the device."""
    assert forebay_log("format", "--force", PMEM).status == DONE
    yield PMEM
    if FAST.exists():
        sh("dmsetup", "remove", "fast")


@pytest.fixture
def fast(log, forebay_log):
    """The first origin behind the log."""
    result = forebay_log("create", "fast", "/dev/mapper/one", PMEM)
    assert result.status == DONE, result.err
    assert result.out == f"{FAST}: /dev/mapper/one behind the write log on {PMEM}\n"
    return FAST


def write(path, text, at=0):
    """Writes a MiB of text and syncs it."""
    data = (text * MIB)[:MIB].encode()
    with open(path, "r+b", buffering=0) as device:
        os.pwrite(device.fileno(), data, at)
        os.fsync(device.fileno())
    return data


def read(path, at=0):
    """Reads past the page cache of the device."""
    return subprocess.run(["dd", f"if={path}", "bs=1M", "count=1", f"skip={at // MIB}", "iflag=direct", "status=none"],
                          stdout=subprocess.PIPE, check=True).stdout


def test_a_life(forebay_log, log):
    uuid = forebay_log("status", "--json", log).json[0]["uuid"]
    assert forebay_log("create", "fast", "/dev/mapper/one", log).status == DONE
    fast, data = FAST, write(FAST, "durable ")
    assert read(fast) == data
    shown, = forebay_log("status", "--json").json
    assert shown["name"] == "fast" and shown["in_use"] and shown["device"] == str(PMEM)
    assert (shown["health"], shown["mode"], shown["origin_sectors"]) == ("ok", "write", SECTORS)
    assert shown["generations_used"] >= 1 and shown["values"]["write_sectors"] >= MIB // 512
    assert (shown["origin"], shown["origin_id"], shown["options"]) == ("/dev/mapper/one", "TEST-one", {})
    assert shown["uuid"] == uuid and shown["volatile_log"] is False
    for name in ("fast", FAST, PMEM, "/dev/mapper/one"):
        assert forebay_log("status", "--json", name).json[0]["name"] == "fast"
    assert "ok, mode write" in forebay_log("status").out
    result = forebay_log("flush", "fast")
    assert (result.status, result.out) == (DONE, "fast: everything is on the origin\n"), result.err
    assert forebay_log("status", "--json").json[0]["bytes_used"] == 0
    data = write(fast, "again ")
    result = forebay_log("remove", "fast")
    assert (result.status, result.out) == (DONE, "fast: removed; everything is on the origin\n"), result.err
    assert not FAST.exists() and read("/dev/mapper/one") == data
    assert forebay_log("status").out == "No write log is in use.\n"
    assert "0 writes" in forebay_log("check", PMEM).out


@pytest.mark.parametrize("look", [1, 2, 3])
def test_status_of_a_log_that_goes_meanwhile(forebay_log, fast, vanish, look):
    """The list leaves it out, whenever it vanishes. If it was named, the command says that it is gone."""
    result = forebay_log("status", "--json", **vanish(look))
    assert (result.status, result.err) == (DONE, "") and (result.json == [] or look > 2)
    result = forebay_log("status", "fast", **vanish(look))
    assert result.status == DONE and look > 2 or "fast is neither a device with a write log nor" in result.err


def test_what_stays_in_the_log_is_found_again(forebay_log, fast):
    before = read("/dev/mapper/one")
    data = write(fast, "kept in the log ")
    result = forebay_log("remove", "--no-flush", "fast")
    assert result.status == DONE and f"{PMEM} holds at most " in result.out and "Don't mount or change /dev/mapper/one" in result.out
    assert read("/dev/mapper/one") == before != data
    assert forebay_log("check", PMEM).status == DONE
    result = forebay_log("format", PMEM)
    assert result.status == FAILED and "not yet on its origin" in result.err and "TEST-one" in result.err
    result = forebay_log("create", "fast", "/dev/mapper/two", PMEM)
    assert result.status == FAILED
    assert "holds writes to another origin than /dev/mapper/two" in result.err
    assert f"It was used with TEST-one ({SECTORS} sectors); this is TEST-two ({SECTORS} sectors)." in result.err
    result = forebay_log("create", "fast", "/dev/mapper/one", PMEM)
    assert result.status == DONE and f"{PMEM}: replaying what it holds, at most " in result.out
    assert read(FAST) == data
    assert forebay_log("remove", "fast").status == DONE
    assert read("/dev/mapper/one") == data


def test_an_origin_without_a_name(forebay_log, log):
    """As in the target: the log drops the name of an earlier origin, and learns that of the new one when there is one."""
    def origin(*uuid):
        sh("dmsetup", "create", "plain", *uuid, "--table", f"0 {SECTORS // 2} linear {NVME} {AT + 2 * SECTORS}")
        sh("dmsetup", "mknodes")

    def bound():
        shown, = forebay_log("status", "--json", log).json
        return shown["origin_id"]

    def use(*text):
        result = forebay_log("create", "fast", "/dev/mapper/plain", log)
        assert result.status == DONE, result.err
        assert ("has the size of that disk, and is taken for it" in result.err) == (not text)
        for word in text:
            write(FAST, word)
        kept = read(FAST)
        assert forebay_log("remove", "--no-flush", "fast").status == DONE
        return kept

    assert forebay_log("create", "fast", "/dev/mapper/one", log).status == DONE
    assert forebay_log("remove", "fast").status == DONE and bound() == "TEST-one"
    origin()
    try:
        kept = use("whose is it? ")
        assert bound() == "" and use() == kept
        result = forebay_log("create", "fast", "/dev/mapper/one", log)
        assert result.status == FAILED and "a disk without a name" in result.err
        sh("dmsetup", "remove", "plain")
        origin("--uuid", "TEST-plain")
        assert use() == kept and bound() == "TEST-plain"
    finally:
        sh("dmsetup", "remove", "plain")


def test_another_origin_on_purpose(forebay_log, fast):
    data = write(fast, "for the other ")
    assert forebay_log("remove", "--no-flush", "fast").status == DONE
    assert forebay_log("create", "--any-origin", "fast", "/dev/mapper/two", PMEM).status == DONE
    assert forebay_log("remove", "fast").status == DONE
    assert read("/dev/mapper/two") == data
    assert forebay_log("create", "fast", "/dev/mapper/one", PMEM).status == DONE, "an empty log is anybody's"


def test_another_origin_on_purpose_that_cannot_be(forebay_log, fast):
    """Refused by the kernel, at once or when it finds writes beyond the end: the log stays the first origin's."""
    data = write(fast, "at the end ", 60 * MIB)
    assert forebay_log("remove", "--no-flush", "fast").status == DONE
    sh("dmsetup", "create", "small", "--uuid", "TEST-small", "--table", f"0 {MIB // 512} linear {NVME} {AT + 2 * SECTORS}")
    sh("dmsetup", "mknodes")
    try:
        for arguments in (["--option", "slots=0", "fast", "/dev/mapper/two"], ["fast", "/dev/mapper/small"]):
            result = forebay_log("create", "--any-origin", *arguments, PMEM)
            assert result.status == FAILED and "fast: cannot create it" in result.err
            shown, = forebay_log("status", "--json", PMEM).json
            assert (shown["origin_id"], shown["origin_sectors"]) == ("TEST-one", SECTORS)
    finally:
        sh("dmsetup", "remove", "small")
    assert forebay_log("create", "fast", "/dev/mapper/one", PMEM).status == DONE
    assert forebay_log("remove", "fast").status == DONE
    assert read("/dev/mapper/one", 60 * MIB) == data


def test_numbers_in_the_table(forebay_log, log, tmp_path):
    """Tables have device numbers: a path may have blanks, or lead to another device when the kernel reads the table."""
    (tmp_path / "a b").symlink_to("/dev/mapper/one")
    (tmp_path / "the log").symlink_to(PMEM)
    result = forebay_log("create", "fast", tmp_path / "a b", tmp_path / "the log")
    assert result.status == DONE, result.err
    numbers = [f"{os.major(device)}:{os.minor(device)}" for device in (os.stat(path).st_rdev for path in ("/dev/mapper/one", PMEM))]
    assert sh("dmsetup", "table", "fast").split()[3:5] == numbers


def test_options_of_the_target(forebay_log, log):
    result = forebay_log("create", "--option", "slots=3", "--option", "on_damage=skip", "fast", "/dev/mapper/one", PMEM)
    assert result.status == DONE, result.err
    assert "slots 3 on_damage skip" in sh("dmsetup", "table", "fast")
    assert forebay_log("remove", "fast").status == DONE
    result = forebay_log("create", "--option", "slots=0", "fast", "/dev/mapper/one", PMEM)
    assert result.status == FAILED and "dmesg says why the kernel refused" in result.err
    result = forebay_log("create", "one", "/dev/mapper/one", PMEM)
    assert result.status == FAILED and "one: a mapped device of that name already exists" in result.err
    assert not FAST.exists()


def test_an_origin_that_is_no_whole_blocks(forebay_log, log):
    sh("dmsetup", "create", "odd", "--uuid", "TEST-odd", "--table", f"0 {SECTORS - 2} linear {NVME} {AT + 2 * SECTORS}")
    sh("dmsetup", "mknodes")
    try:
        result = forebay_log("create", "--option", "block_size=4096", "fast", "/dev/mapper/odd", log)
        assert result.status == FAILED and "The largest that fits: --option block_size=1024." in result.err
        assert forebay_log("create", "--option", "block_size=1024", "fast", "/dev/mapper/odd", log).status == DONE
        assert forebay_log("remove", "fast").status == DONE
    finally:
        sh("dmsetup", "remove", "odd")


def test_what_is_set_later(forebay_log, fast):
    assert forebay_log("set", "fast", "low_mark=70", "high_mark=80", "depth=3").status == DONE
    assert forebay_log("status", "--json").json[0]["options"] == {"high_mark": 80, "low_mark": 70, "depth": 3}
    result = forebay_log("set", "fast", "depth=257")
    assert result.status == FAILED and "fast: depth=257: invalid value" in result.err


def test_latency(forebay_log, fast):
    assert forebay_log("latency", "fast", "on").status == DONE
    write(fast, "measured ")
    steps = {step["step"]: step for step in forebay_log("latency", "--json", "fast").json}
    assert steps["copy"]["count"] and steps["copy"]["count"] == sum(count for _, count in steps["copy"]["bins"])
    assert forebay_log("latency", "fast").out.startswith("step ")
    assert forebay_log("latency", "fast", "off").status == DONE


def test_a_log_with_the_smallest_chunks(forebay_log, log):
    assert forebay_log("format", "--force", "--chunk-size", 16384, log).status == DONE
    assert forebay_log("create", "fast", "/dev/mapper/one", log).status == DONE
    data = write(FAST, "small ")
    assert forebay_log("remove", "fast").status == DONE and read("/dev/mapper/one") == data


def test_cleaner(forebay_log, fast):
    write(fast, "first ")
    result = forebay_log("flush", "--cleaner", "fast")
    assert (result.status, result.out) == (DONE, "fast: everything is on the origin, and further writes go there\n")
    data = write(fast, "second ")
    shown, = forebay_log("status", "--json").json
    assert shown["mode"] == "cleaner" and shown["bytes_used"] == 0
    assert read("/dev/mapper/one") == data
    with open(fast, "rb"):                      # a program may use it meanwhile
        assert forebay_log("resume", "fast").out == "fast: logs writes again\n"
    newer = write(fast, "third ")
    shown, = forebay_log("status", "--json").json
    assert shown["mode"] == "write" and shown["bytes_used"] > 0
    assert read("/dev/mapper/one") == data and read(fast) == newer
    assert "nothing to do" in forebay_log("resume", "fast").out


def test_what_is_in_use_is_left_alone(forebay, forebay_log, fast):
    for verb in (["writelog", "format", "--force"], ["writelog", "check"], ["format", "--force"], ["check"]):
        result = forebay(*verb, PMEM)
        assert result.status == FAILED and f"{PMEM} is used by /dev/mapper/fast (dm-" in result.err
        assert "`forebay writelog status fast` shows it" in result.err
    assert forebay_log("check", "--force", PMEM).status in (DONE, LEFT)
    sh("mkfs.ext4", "-q", FAST)
    sh("mount", FAST, "/mnt")
    try:
        result = forebay_log("remove", "fast")
        assert result.status == FAILED and "fast is in use" in result.err
        result = forebay_log("create", "more", "/dev/mapper/one", PMEM)
        assert result.status == FAILED and "/dev/mapper/one is used by /dev/mapper/fast (dm-" in result.err
    finally:
        sh("umount", "/mnt")
    assert forebay_log("remove", "fast").status == DONE
    sh("fsck.ext4", "-fn", "/dev/mapper/one")


@pytest.fixture
def slow(log, forebay_log):
    """The first origin, whose writes take so long that there is time for something else, behind the log."""
    sh("modprobe", "dm-delay")
    sh("dmsetup", "create", "slow", "--uuid", "TEST-slow", "--table", f"0 {SECTORS} delay /dev/mapper/one 0 0 /dev/mapper/one 0 {SLOW}")
    sh("dmsetup", "mknodes")
    assert forebay_log("create", "fast", "/dev/mapper/slow", log).status == DONE
    yield FAST
    if FAST.exists():
        sh("dmsetup", "remove", "fast")
    sh("dmsetup", "remove", "slow")


def mode():
    """As in the status line."""
    return sh("dmsetup", "status", "fast").split()[4]


@contextlib.contextmanager
def visit(begins, ends):
    """A process that has the device open from begins() to ends()."""
    def look():
        until(begins)
        with open(FAST, "rb"):
            until(ends)
    visitor = threading.Thread(target=look)
    visitor.start()
    yield
    visitor.join()


def until(true, seconds=60):
    """Waits for that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to be")


def asleep(process):
    """Whether a process sleeps until a point in time."""
    try:
        return "nanosleep" in Path(f"/proc/{process.pid}/wchan").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_sent(process):
    """Whether the child that sent the message has ended, and the process sleeps."""
    try:
        return not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii") and asleep(process)
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_visitor_is_waited_for(command, forebay_log, fast):
    """udev opens each device that a process has written to. The visitor closes it once the command waits for that."""
    begin = time.monotonic()
    forebay_log("status", "fast")
    takes = time.monotonic() - begin
    with open(fast, "rb"):
        removing = subprocess.Popen([command, "writelog", "remove", "fast"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until(lambda: asleep(removing) or removing.poll() is not None, seconds=60 + 20 * takes)
        assert removing.poll() is None, removing.stderr.read()
    said = removing.communicate()[1]
    assert (removing.returncode, said) == (DONE, "")


@pytest.mark.parametrize("stays", [False, True])
def test_a_visitor_while_it_is_written_back(command, slow, stays):
    """A visitor opens the device after the check that it is unused. The device is removed once the visitor closes it; else its state is reported."""
    write(slow, "for long ")
    over = threading.Event()
    removing = subprocess.Popen([command, "writelog", "remove", "fast"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with visit(lambda: mode() == "cleaning", lambda: over.is_set() or (not stays and has_sent(removing))):
        said = removing.communicate()[1]
        over.set()
    if stays:
        assert removing.returncode == FAILED and "fast is in use" in said
        assert "It no longer logs writes: they go to the origin, until `forebay writelog resume fast`." in said
    else:
        assert removing.returncode == DONE, said
    assert FAST.exists() == stays


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(command, slow, number):
    """An interrupted command reports the state of the device, and leaves no process behind."""
    write(slow, "for long ")
    with subprocess.Popen([command, "writelog", "remove", "fast"], stderr=subprocess.PIPE, text=True) as removing:
        until(lambda: mode() == "cleaning")
        removing.send_signal(number)
        said = removing.communicate(timeout=120)[1]
    assert removing.returncode == LEFT
    assert "not everything could be written back: Interrupted system call" in said and "nothing is lost" in said
    assert ("It goes on logging writes." in said) == (mode() != "cleaner") and "--no-flush" in said
    sh("dmsetup", "remove", "fast")


def test_with_children_ignored(command, fast):
    """A process inherits an ignored SIGCHLD, with which waitpid() gets no status."""
    data = write(fast, "ignored ")
    for verb in ("flush", "remove"):
        done = subprocess.run(["env", "--ignore-signal=CHLD", command, "writelog", verb, "fast"], timeout=120, check=False,
                              stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (DONE, "")
    assert read("/dev/mapper/one") == data


def test_what_cannot_be_tried(forebay_log, fast):
    """The status says that nothing was tried, not that something is left."""
    write(fast, "suspended ")
    sh("dmsetup", "suspend", "fast")
    for verb in ("flush", "remove"):
        result = forebay_log(verb, "fast")
        assert result.status == FAILED
        assert "writing back could not be tried: Device or resource busy" in result.err and "Is it suspended?" in result.err
    sh("dmsetup", "resume", "fast")
    assert forebay_log("remove", "fast").status == DONE


def test_caches_and_logs_are_not_mistaken(forebay, forebay_log, log):
    sh("mkfs.ext4", "-q", "/dev/mapper/one")
    sh("mount", "/dev/mapper/one", "/mnt")
    done = subprocess.run(["mount", "-t", "forebay", "-o", f"cache={PMEM}", "/mnt", "/mnt"], capture_output=True, text=True)
    sh("umount", "/mnt")
    assert done.returncode
    assert forebay("format", "--force", PMEM).status == DONE
    result = forebay_log("create", "fast", "/dev/mapper/one", PMEM)
    assert result.status == FAILED and "is a cache of the forebay file system, not a write log" in result.err
    refused = subprocess.run(["dmsetup", "create", "fast", "--table", f"0 {SECTORS} forebay-wlog /dev/mapper/one {PMEM}"],
                             capture_output=True, text=True)
    assert refused.returncode and not FAST.exists()


def test_an_origin_that_fails(forebay_log, fast):
    data = write(fast, "safe in the log ")
    sh("dmsetup", "suspend", "--nolockfs", "one")
    sh("dmsetup", "load", "one", "--table", f"0 {SECTORS} error")
    sh("dmsetup", "resume", "one")
    for verb in ("flush", "remove"):
        result = forebay_log(verb, "fast")
        assert result.status == LEFT and not result.out
        assert "not everything could be written back: Input/output error" in result.err and "in the log; nothing is lost" in result.err
    assert "--no-flush" in result.err
    assert forebay_log("status", "--json").json[0]["health"] == "error"
    assert "The origin refuses writes.\n" in forebay_log("status").out and "tried again" in forebay_log("status").out
    assert read(fast) == data
    sh("dmsetup", "suspend", "--nolockfs", "one")
    sh("dmsetup", "load", "one", "--table", f"0 {SECTORS} linear {NVME} {AT}")
    sh("dmsetup", "resume", "one")
    assert forebay_log("remove", "fast").status == DONE
    assert read("/dev/mapper/one") == data

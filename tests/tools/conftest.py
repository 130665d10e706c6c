# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the forebay command share: the command, images of caches and logs, and a folder in place of
device-mapper."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = CHECKOUT / "build" / "tools"
MIB = 1 << 20
IN_MACHINE = os.uname().nodename == "forebay-vm"

DONE, REPAIRED, LEFT, FAILED, USAGE = 0, 1, 4, 8, 16

ERRNO = {"EINTR": 4, "EIO": 5, "ENXIO": 6, "EBUSY": 16, "EINVAL": 22, "ERANGE": 34}
LOG_TABLE = "253:0 259:0 4 slots 3 origin_id " + b"TEST-one".hex().ljust(128, "0")


@dataclass
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(scope="session")
def command():
    """The forebay command, built if necessary. The test machine uses what the host has built."""
    if not IN_MACHINE:
        subprocess.run(["make", "-s", "-C", CHECKOUT / "tools", f"O={BUILD}"], check=True)
    return BUILD / "forebay"


def build_helper(name, *core_files):
    """Builds a helper that writes records with core's own code. The test machine uses what the host has built."""
    program = BUILD / name
    core = CHECKOUT / "core"
    sources = [CHECKOUT / f"tests/tools/{name}.c", *(core / file for file in core_files), core / "pm/host.c"]
    newest = max(path.stat().st_mtime for path in [*sources, *core.glob("*/*.h")])
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{core}",
                        "-o", program, *sources], check=True)
    return program


def build_library(name):
    """Builds a library to preload."""
    library = BUILD / f"{name}.so"
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library,
                    CHECKOUT / f"tests/tools/{name}.c"], check=True)
    return library


@pytest.fixture(scope="session")
def make_store():
    """Makes a cache hold files and pages."""
    names = ("super", "append", "commit", "decide", "read", "record", "trim", "write")
    return build_helper("make_store", "store/page.c", "store/file.c", "store/super.c", *(f"names/{part}.c" for part in names))


@pytest.fixture(scope="session")
def make_log():
    """Makes a write log hold entries."""
    return build_helper("make_log", *(f"log/{part}.c" for part in ("super", "gen", "append", "replay")))


@pytest.fixture(scope="session")
def advise_model():
    """What `forebay advise` makes of writes and sync calls that it is told of."""
    return build_helper("advise_model", "../tools/advise/model.c")


@pytest.fixture(scope="session")
def fuzz_log():
    """Changes a log as the fuzzer of tests/core does: fuzz_log PATH SEED."""
    return build_helper("fuzz_log", "log/super.c", "../tests/core/writelog_mutate.c")


@pytest.fixture
def forebay(command):
    """Runs the command; returns status, standard output and standard error."""
    def run(*arguments, **environment):
        done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8", **environment})
        return Result(done.returncode, done.stdout, done.stderr)
    return run


def stop_for_two_seconds(running):
    """Stops a run of the command once its progress has a thread, and lets it go on."""
    threads = Path(f"/proc/{running.pid}/task")
    while running.poll() is None and len(list(threads.iterdir())) < 2:
        time.sleep(0.001)
    running.send_signal(signal.SIGSTOP)
    time.sleep(2.3)
    running.send_signal(signal.SIGCONT)


def said_by_a_slow_run(*arguments):
    """What a run of the command that takes more than two seconds says on standard error. It takes so long because it is
    stopped once its progress has a thread; on a busy host it may end before, and is tried again."""
    for _ in range(5):
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            stop_for_two_seconds(running)
            said = running.communicate(timeout=120)[1]
        assert running.returncode == DONE
        if said:
            break
    return said


@pytest.fixture
def blank(tmp_path):
    """A new image of zeros."""
    def make(size=16 * MIB, name="cache.img"):
        path = tmp_path / name
        with open(path, "wb") as image:
            image.truncate(size)
        return path
    return make


@pytest.fixture
def cache(blank, forebay, make_store):
    """A formatted image with some records: cache("bind", "file 0 0 live", "page 0 0 7 out-of-sync")."""
    def make(*commands, size=16 * MIB, options=()):
        path = blank(size)
        assert forebay("format", *options, path).status == DONE
        subprocess.run([make_store, path, *" ".join(commands).split()], check=True)
        return path
    return make


@pytest.fixture
def log(blank, forebay, make_log):
    """A formatted write log with some entries: log("open 0", "write 100 8", options=["--data-checksums"])."""
    def make(*commands, size=4 * MIB, options=()):
        path = blank(size, name="log.img")
        assert forebay("writelog", "format", *options, path).status == DONE
        subprocess.run([make_log, path, *" ".join(commands).split()], check=True)
        return path
    return make


def numbers_from(program, path, what):
    """The numbers that a helper prints of an image."""
    done = subprocess.run([program, path, what], check=True, capture_output=True, text=True)
    return tuple(map(int, done.stdout.split()))


@pytest.fixture
def log_offsets(make_log):
    """Byte offsets of a log's table of generations, its data, and the header of its first chunk."""
    return lambda path: numbers_from(make_log, path, "offsets")


@pytest.fixture
def tables(make_store):
    """Byte offsets of an image's file table and page table."""
    return lambda path: numbers_from(make_store, path, "offsets")


@pytest.fixture
def names_offsets(make_store):
    """Byte offsets of an image's name log, of its words and of its first committed record."""
    return lambda path: numbers_from(make_store, path, "names-offsets")


@pytest.fixture
def patch():
    """Overwrites bytes of an image."""
    def write(path, offset, data):
        with open(path, "r+b") as image:
            image.seek(offset)
            image.write(data)
    return write


@pytest.fixture(scope="session")
def fake_mapper():
    """The library that stands in for libdevmapper."""
    return build_library("fake_mapper")


class Mapper:
    """A folder in place of the kernel (see fake_mapper.c), and the command that uses the folder."""

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
        """A mapped device in use."""
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
        """Sets the result of a request: of the line that the journal gets of it."""
        times = (9 if error else 0) if times is None else times
        (self.folder / "answers" / line).write_text(f"{ERRNO[error] if error else 0} {times} {seconds} {text}")

    def journal(self):
        """The requests to the kernel so far, one a line."""
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def __call__(self, *arguments):
        return self.forebay(*arguments, **self.environment)


@pytest.fixture
def mapper(fake_mapper, forebay, tmp_path, monkeypatch, log):
    """There are no devices. The log is an image, whose name is that of a device with an unknown number."""
    monkeypatch.chdir(tmp_path)
    os.link(log("bind 131072 TEST-one", "open 0", "write 8 8"), "259:0")
    return Mapper(tmp_path, fake_mapper, forebay)

# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the forebay command share: the command, images of caches, and a kernel that is not there."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = CHECKOUT / "build" / "tools"
MIB = 1 << 20
IN_MACHINE = os.uname().nodename == "forebay-vm"

DONE, REPAIRED, LEFT, FAILED, USAGE = 0, 1, 4, 8, 16


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
    """The forebay command, built if need be; for the test machine on the host, before."""
    if not IN_MACHINE:
        subprocess.run(["make", "-s", "-C", CHECKOUT / "tools", f"O={BUILD}"], check=True)
    return BUILD / "forebay"


def build_helper(name, *core_files):
    """Builds one of the helpers that write records with core's own code; on the host, used in the test machine too."""
    program = BUILD / name
    core = CHECKOUT / "core"
    sources = [CHECKOUT / f"tests/tools/{name}.c", *(core / file for file in core_files), core / "host_pm.c"]
    newest = max(path.stat().st_mtime for path in [*sources, *core.glob("*.h")])
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{core}",
                        "-o", program, *sources], check=True)
    return program


@pytest.fixture(scope="session")
def make_store():
    """Makes a cache hold files and pages."""
    return build_helper("make_store", "pagestore.c", "super.c")


@pytest.fixture(scope="session")
def make_log():
    """Makes a write log hold entries."""
    return build_helper("make_log", *(f"writelog_{part}.c" for part in ("super", "gen", "append", "replay")))


@pytest.fixture(scope="session")
def fuzz_log():
    """Changes a log as the fuzzer of tests/core does: fuzz_log PATH SEED."""
    return build_helper("fuzz_log", "writelog_super.c", "../tests/core/writelog_mutate.c")


@pytest.fixture
def forebay(command):
    """Runs the command; gives back status, standard output and standard error."""
    def run(*arguments, **environment):
        done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=20,
                              stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8", **environment})
        return Result(done.returncode, done.stdout, done.stderr)
    return run


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
    """A formatted image, with the records asked for: cache("bind", "file 0 0 live", "page 0 0 7 out-of-sync")."""
    def make(*commands, size=16 * MIB):
        path = blank(size)
        assert forebay("format", path).status == DONE
        subprocess.run([make_store, path, *" ".join(commands).split()], check=True)
        return path
    return make


@pytest.fixture
def log(blank, forebay, make_log):
    """A formatted write log, with the entries asked for: log("open 0", "write 100 8", options=["--data-checksums"])."""
    def make(*commands, size=4 * MIB, options=()):
        path = blank(size, name="log.img")
        assert forebay("writelog", "format", *options, path).status == DONE
        subprocess.run([make_log, path, *" ".join(commands).split()], check=True)
        return path
    return make


@pytest.fixture
def log_offsets(make_log):
    """Byte offsets of a log's table of generations, its data, and the header of its first chunk."""
    def find(path):
        done = subprocess.run([make_log, path, "offsets"], check=True, capture_output=True, text=True)
        return tuple(map(int, done.stdout.split()))
    return find


@pytest.fixture
def tables(make_store):
    """Byte offsets of an image's file table and page table."""
    def find(path):
        done = subprocess.run([make_store, path, "offsets"], check=True, capture_output=True, text=True)
        return tuple(map(int, done.stdout.split()))
    return find


@pytest.fixture
def patch():
    """Overwrites bytes of an image."""
    def write(path, offset, data):
        with open(path, "r+b") as image:
            image.seek(offset)
            image.write(data)
    return write

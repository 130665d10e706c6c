# SPDX-License-Identifier: GPL-2.0-only
"""On the host: YCSB's client with our binding to RocksDB, built by Maven into build/bench/ycsb, where the guest runs it.

Only these workloads need Java, Maven and what Maven fetches. A request for such a workload installs them.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from vm.settings import CHECKOUT, SetupError

from .commands import CommandFailed
from .progress import say
from .workloads import ycsb

PROJECT = Path(__file__).resolve().parent / "ycsb"
MADE = Path(ycsb.HOME) / "made"         # written when all is there


def make() -> None:
    """Installs Java and Maven, builds the client and loads the database, as far as that has not been done."""
    must(CHECKOUT / "scripts" / "setup", "--for", "ycsb")
    sources = [Path(ycsb.__file__), Path(__file__), *(path for path in PROJECT.rglob("*") if path.is_file())]
    if MADE.exists() and MADE.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return
    say("building YCSB's client with Maven, which fetches what it lacks")
    shutil.rmtree(ycsb.HOME, ignore_errors=True)
    must("mvn", "-q", "-B", "-f", PROJECT / "pom.xml", "compile")
    try:
        load()
    except CommandFailed as problem:
        raise SetupError(f"YCSB's client does not work: {problem}") from None
    MADE.touch()


def load() -> None:
    """Makes the database that transactions begin with, and tries the binding on a copy of it.

    YCSB is told to derive each value from its key and field, and each value read must be that one. An
    update writes the same value again, so a lost update goes unseen.
    """
    known = {"dataintegrity": "true", "fieldlengthdistribution": "constant"}
    ycsb.client(ycsb.LOADED, "load", **known, **{"rocksdb.compact": "false"})
    with tempfile.TemporaryDirectory() as folder:
        found = ycsb.client(shutil.copytree(ycsb.LOADED, f"{folder}/db"), "f", **known)
    ycsb.check(found, ("VERIFY",), ycsb.OPERATIONS)


def must(*argv) -> None:
    """Runs a command with its output shown; a failure becomes a message of ours."""
    status = subprocess.run(argv, stdin=subprocess.DEVNULL).returncode
    if status:
        raise SetupError(f"no YCSB: {' '.join(map(str, argv))} ended with status {status}")

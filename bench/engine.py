# SPDX-License-Identifier: GPL-2.0-only
"""On the host: builds the engine for fio in bench/fio-dax.

An engine uses fio's own structures, whose headers no package has. They come from the source package of the fio that is
installed, in the same version, by apt; `python3 -m bench.engine` fetches them alone, as scripts/setup does.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from vm.debian import Apt, archives
from vm.settings import CACHE, CHECKOUT, SetupError

from .commands import CommandFailed, run
from .progress import say
from .workloads.dax import ENGINE

WORKLOADS = ("blocks-", "fenced-", "interface-")        # that run it
SOURCES = (CHECKOUT / "bench/fio-dax/dax.c", CHECKOUT / "lib/forebay.c")
INCLUDE = CHECKOUT / "include"


def make() -> None:
    """Builds it unless it is newer than all that it is made of."""
    source = headers()
    program = Path(ENGINE)
    used = [*SOURCES, *INCLUDE.rglob("*.h"), source]
    if program.exists() and program.stat().st_mtime > max(path.stat().st_mtime for path in used):
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    "-isystem", source, "-include", source / "config-host.h", f"-I{INCLUDE}", f"-I{INCLUDE}/uapi",
                    "-o", program, *SOURCES, "-lpmem"], check=True)


def headers() -> Path:
    """The folder of fio's sources, fetched if it is not there, with what its own configure finds out."""
    try:
        version = run("dpkg-query", "-W", "-f", "${source:Version}", "fio")
    except CommandFailed:
        raise SetupError("fio is not installed as a package, so the version of its headers is not known: scripts/setup") from None
    place = CACHE / f"fio-{version}"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        fetch(version, place)
    return place


def fetch(version: str, place: Path) -> None:
    """The machine's archives are rarely those of sources, so apt gets lists of its own."""
    work = place.with_name(f"{place.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    (work / "source").mkdir(parents=True)
    say(f"fetching the headers of fio {version}")
    try:
        apt = Apt(work, [line.replace("deb ", "deb-src ", 1) for line in archives()])
        apt.run("apt-get", "-q", "source", "--download-only", f"fio={version}", cwd=work)
        run("tar", "-xf", str(next(work.glob("fio_*.orig.tar.*[!c]"))), "-C", str(work / "source"), "--strip-components=1")
        subprocess.run(["./configure", "--disable-native"], cwd=work / "source", stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True)
        (work / "source").rename(place)
    except (SetupError, CommandFailed, subprocess.CalledProcessError, StopIteration, OSError) as problem:
        raise SetupError(f"can't fetch the source of fio {version}: {problem}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    try:
        headers()
    except SetupError as problem:
        sys.exit(f"bench.engine: {problem}")

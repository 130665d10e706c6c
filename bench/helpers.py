# SPDX-License-Identifier: GPL-2.0-only
"""On the host: compiles the C programs that workloads run; the guest finds them where they were made."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from vm.settings import CHECKOUT

from .workloads.guest_only import UNPACKED

SOURCES = Path(__file__).resolve().parent / "workloads"
BIN = CHECKOUT / "build" / "bench" / "bin"
LIBRARIES = {"flush": ("-lpmem",), "kv": ("-lpmemobj", "-lmemkind")}
# Made for workloads that begin so alone: the host may lack their libraries. They are where bench/packages.py unpacked them.
WITH_PACKAGES = ("kv",)


def make(workloads: Iterable[str] = ()) -> None:
    BIN.mkdir(parents=True, exist_ok=True)
    words = {name.partition("-")[0] for name in workloads}
    changed = max(path.stat().st_mtime for path in SOURCES.glob("*.h"))
    for source in sorted(SOURCES.glob("*.c")):
        program = BIN / source.stem
        if source.stem in WITH_PACKAGES and source.stem not in words:
            continue
        if not program.exists() or program.stat().st_mtime < max(changed, source.stat().st_mtime):
            subprocess.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source, *links(source.stem)],
                           check=True)


def links(program: str) -> list[str]:
    root = Path(UNPACKED, program, "root/usr").resolve()
    places = [f"-I{root}/include", f"-L{root}/lib/x86_64-linux-gnu", f"-Wl,-rpath-link,{root}/lib/x86_64-linux-gnu"]
    return [*(places if program in WITH_PACKAGES else ()), *LIBRARIES.get(program, ())]

# SPDX-License-Identifier: GPL-2.0-only
"""On the host: compiles the C programs that workloads run; the guest finds them where they were made."""

import subprocess
from pathlib import Path

from vm.settings import CHECKOUT

SOURCES = Path(__file__).resolve().parent / "workloads"
BIN = CHECKOUT / "build" / "bench" / "bin"


def make() -> None:
    BIN.mkdir(parents=True, exist_ok=True)
    for source in sorted(SOURCES.glob("*.c")):
        program = BIN / source.stem
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)

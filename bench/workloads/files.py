# SPDX-License-Identifier: GPL-2.0-only
"""Creating, writing and deleting many files (PMDK thesis 4.3, figure 9). An own driver stands in for Filebench."""

import os
from pathlib import Path

from ..commands import run
from .names import BIN, result

COUNT = 1000
SIZE, PAGE = 64 << 10, 4096         # as in files.c


def phase(name: str, count: int = COUNT):
    """One of the driver's phases; a fixed number of files. Files/s."""
    def measure(folder: str, _: float) -> dict:
        times = [int(line) for line in run(str(BIN / "files"), folder, name, str(count), timeout=600).split()]
        if len(times) != count:
            raise ValueError(f"files was to {name} {count} files, and timed {len(times)}")
        check(folder, name, count)
        found = result(times)
        return found | {"mean_us": 1e6 / found["value"]}
    return measure


def path_of(folder: str, file: int) -> Path:
    return Path(folder, str(file // 1000), str(file // 100), str(file // 10), str(file))


def check(folder: str, name: str, count: int) -> None:
    """All files are there with what that phase wrote; or none."""
    found = sum(len(files) for _, _, files in os.walk(folder))
    if found != (0 if name == "delete" else count):
        raise ValueError(f"{found} files are there after {name} of {count}")
    for file in range(0 if name == "delete" else count):
        if path_of(folder, file).read_bytes() != content(name, file):
            raise ValueError(f"file {file} has other contents than {name} wrote")


def content(name: str, file: int) -> bytes:
    return (file.to_bytes(4, "little") + name[0].encode() * (PAGE - 4)) * (SIZE // PAGE)

# SPDX-License-Identifier: GPL-2.0-only
"""Unpacking kernel sources without any sync: names, small files, metadata."""

import os

from .. import cost
from ..commands import run

FILES = 3000
ARCHIVE = os.path.join(os.path.dirname(__file__), "../../build/bench/sources.tar")     # made by bench/sources.py
IN_MEMORY = "/dev/shm/bench-sources.tar"


def untar():
    def measure(folder: str, seconds: float) -> dict:
        if not os.path.exists(IN_MEMORY):
            run("cp", ARCHIVE, IN_MEMORY)
        os.sync()
        with cost.Spent() as spent:
            run("tar", "-x", "-f", IN_MEMORY, "-C", folder)
        if (found := sum(len(files) for _, _, files in os.walk(folder))) != FILES:
            raise ValueError(f"tar made {found} files, not {FILES}")
        return {"value": FILES / spent.seconds, **spent.each(FILES)}
    return measure

# SPDX-License-Identifier: GPL-2.0-only
"""LMDB, synchronous as by default: puts, a transaction each. Its file grows by pwrite(); two meta pages are written by turns."""

import os
import sys
import time

from .. import cost
from . import guest_only
from .names import LEAST, result

VALUE, MAP = 100, 256 << 20
PACKAGES = "/usr/lib/python3/dist-packages"


def puts():
    """Commits/s of a single put of 100 bytes under a new key."""
    def measure(folder: str, seconds: float) -> dict:
        guest_only.install("lmdb")
        environment = connect(folder)
        os.sync()
        times, end = [], time.monotonic() + seconds
        with cost.Spent() as spent:
            while len(times) < LEAST or time.monotonic() < end:
                begin = time.monotonic_ns()
                with environment.begin(write=True) as transaction:
                    transaction.put(key(len(times)), value(len(times)))
                times.append(time.monotonic_ns() - begin)
        environment.close()
        check(folder, len(times))
        return result(times) | spent.each(len(times))
    return measure


def connect(folder: str):
    if PACKAGES not in sys.path:        # -S: Python doesn't look there by itself
        sys.path.append(PACKAGES)
    import lmdb
    return lmdb.open(folder, map_size=MAP, sync=True, metasync=True, writemap=False)


def key(step: int) -> bytes:
    """Keys come in no order: a tree's pages are not filled one after the other."""
    return (step * 2654435761 % (1 << 32)).to_bytes(4, "big")


def value(step: int) -> bytes:
    return step.to_bytes(4, "little") * (VALUE // 4)


def check(folder: str, done: int) -> None:
    environment = connect(folder)
    with environment.begin() as transaction:
        found = transaction.stat()["entries"]
        if found != done:
            raise ValueError(f"LMDB has {found} entries after {done} puts")
        for step in range(done):
            if transaction.get(key(step)) != value(step):
                raise ValueError(f"LMDB has another value than put {step} gave")
    environment.close()

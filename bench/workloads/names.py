# SPDX-License-Identifier: GPL-2.0-only
"""Sync calls that owe names: new files, mail, replacement, SQLite's journals, segments of a log.

Each run looks afterwards at what is there: as many files, by the right names and with the right contents, as steps were
timed; as many rows as were inserted, in a database that SQLite finds in order.
"""

import os
import statistics
import time
from pathlib import Path

from .. import cost
from ..commands import run

BIN = Path(__file__).resolve().parents[2] / "build" / "bench" / "bin"
SMALL, SEGMENT, SEGMENTS, LEAST = 4096, 1 << 20, 8, 5      # as in names.c


def steps(program: str):
    """One of names.c's programs. Steps/s."""
    def measure(folder: str, seconds: float) -> dict:
        for name in ("tmp", "new") if program == "maildir" else ():
            os.mkdir(f"{folder}/{name}")
        os.sync()
        with cost.Spent() as spent:
            said = run(str(BIN / "names"), folder, program, str(seconds), timeout=600)
        times = [int(line) for line in said.split()]
        check(folder, program, len(times))
        return result(times) | spent.each(len(times))
    return measure


def result(times: list[int]) -> dict:
    """Of a run, from the nanoseconds of its steps."""
    times = sorted(times)
    return {"value": len(times) / (sum(times) / 1e9), "p50_us": statistics.median(times) / 1000,
            "p99_us": times[len(times) * 99 // 100] / 1000, "steps": len(times)}


def check(folder: str, program: str, done: int) -> None:
    """What so many steps leave, and nothing else."""
    first = max(0, done - SEGMENTS) if program == "wal" else 0
    must = {"create": {f"f{step}": step for step in range(done)}, "maildir": {f"new/{step}": step for step in range(done)},
            "replace": {"f": done - 1}, "wal": {f"wal{step}": step for step in range(first, done)}}[program]
    found = {os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names}
    if found != must.keys():
        raise ValueError(f"{program}: {len(found)} files after {done} steps, not the {len(must)} that there should be")
    size = SEGMENT if program == "wal" else SMALL
    for name, step in must.items():
        content = Path(folder, name).read_bytes()
        if content[4:] != b"n" * (size - 4) or int.from_bytes(content[:4], "little") != step:
            raise ValueError(f"{program}: {name} has other contents than step {step} wrote")


def sqlite(mode: str):
    """Inserts of 100 bytes, a transaction each, synchronous=FULL (the default). Inserts/s."""
    def measure(folder: str, seconds: float) -> dict:
        path = f"{folder}/db"
        base = connect(path, mode)
        base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value BLOB)")
        os.sync()
        times, end = [], time.monotonic() + seconds
        with cost.Spent() as spent:
            while len(times) < LEAST or time.monotonic() < end:
                begin = time.monotonic_ns()
                base.execute("INSERT INTO t (value) VALUES (?)", (len(times).to_bytes(4, "little") * 25,))
                times.append(time.monotonic_ns() - begin)
        base.close()
        check_rows(path, len(times))
        return result(times) | spent.each(len(times))
    return measure


def connect(path: str, mode: str):
    import sqlite3      # here, since each guest imports this file
    base = sqlite3.connect(path, isolation_level=None)
    found = base.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
    base.execute("PRAGMA synchronous=FULL")
    if found != mode or base.execute("PRAGMA synchronous").fetchone()[0] != 2:
        raise ValueError(f"SQLite has journal_mode={found}, not {mode}, or isn't synchronous")
    return base


def check_rows(path: str, inserted: int) -> None:
    import sqlite3
    base = sqlite3.connect(path)
    rows = [value for value, in base.execute("SELECT value FROM t ORDER BY id")]
    if rows != [number.to_bytes(4, "little") * 25 for number in range(inserted)]:
        raise ValueError(f"SQLite has {len(rows)} rows, or others than the {inserted} that were inserted")
    if base.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
        raise ValueError("SQLite finds the database damaged")
    base.close()

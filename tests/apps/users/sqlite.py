# SPDX-License-Identifier: GPL-2.0-only
"""SQLite in every journal mode, synchronous=EXTRA: the same statements leave the same rows as in memory; two processes
at once; a process that is killed loses nothing it committed."""

import hashlib
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

from place import call, expect
from users.sqlite_writer import TABLE, connect

WRITER = [sys.executable, "-B", str(Path(__file__).with_name("sqlite_writer.py"))]
MODES = ("wal", "delete", "truncate", "persist")


def run(place):
    for mode in MODES:
        workload(place, mode)
        killed(place, mode)
    together(place)


def check(base):
    found = base.execute("PRAGMA integrity_check").fetchall()
    expect(found == [("ok",)], f"integrity_check: {found}")


def workload(place, mode):
    """The same random statements on forebay and in memory."""
    path = place.folder / f"{mode}.db"
    bases = [connect(path, mode), sqlite3.connect(":memory:", isolation_level=None)]
    for base in bases:
        if base is bases[0]:
            base.execute("PRAGMA mmap_size=1048576")
        base.execute("PRAGMA cache_size=20")         # spills: dirty pages are written and read again
        base.executescript(TABLE)
    count = place.size(80, 25)
    for number in range(count):
        for base in bases:
            transaction(base, random.Random(number))
    bases[0].execute("VACUUM")
    check(bases[0])
    bases[0].close()
    on_disk = connect(path)
    check(on_disk)
    expect(rows(on_disk) == rows(bases[1]), f"{mode}: not the rows that the same statements leave in memory")
    on_disk.close()
    expect("ok" == call("sqlite3", path, "PRAGMA integrity_check").strip(), "sqlite3(1) finds damage")


def transaction(base, choose):
    kind = choose.choices(("insert", "update", "delete", "rollback"), (6, 3, 1, 1))[0]
    base.execute("BEGIN IMMEDIATE")
    if kind in ("insert", "rollback"):
        for _ in range(choose.randrange(1, 20)):
            base.execute("INSERT INTO t (key, value) VALUES (?, ?)", (choose.randrange(1000), choose.randbytes(choose.randrange(3000))))
    elif kind == "update":
        base.execute("UPDATE t SET value = ? WHERE key % 7 = ?", (choose.randbytes(500), choose.randrange(7)))
    else:
        base.execute("DELETE FROM t WHERE key < ?", (choose.randrange(300),))
    base.execute("ROLLBACK" if kind == "rollback" else "COMMIT")


def rows(base):
    return hashlib.sha256(repr(base.execute("SELECT id, key, value FROM t ORDER BY id").fetchall()).encode()).hexdigest()


def killed(place, mode):
    """Kills a process that says which rows it committed; they must be there, and no hole before them."""
    path = place.folder / f"{mode}-killed.db"
    wanted = place.size(40, 10)
    process = subprocess.Popen([*WRITER, path, mode], stdout=subprocess.PIPE, text=True)
    said = [process.stdout.readline() for _ in range(wanted)]
    process.kill()
    said += process.stdout.readlines()
    process.wait()
    committed = [int(line) for line in said if line.endswith("\n") and line.strip().isdecimal()]
    expect(len(committed) >= wanted, f"{mode}: the writer said {said}")
    base = connect(path)
    check(base)
    found = [row[0] for row in base.execute("SELECT id FROM t ORDER BY id")]
    base.close()
    expect(found == list(range(1, len(found) + 1)) and len(found) >= committed[-1],
           f"{mode}: committed up to {committed[-1]}, found {found[:5]} ... {found[-5:]}")


def together(place):
    """Two writers on one database in WAL mode: they share its index by a mapping."""
    path = place.folder / "together.db"
    connect(path, "wal").close()
    writers = [subprocess.Popen([*WRITER, path, "wal", str(place.size(60, 15))], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        expect(writer.returncode == 0, f"a writer of two: {errors}")
    base = connect(path)
    check(base)
    count = base.execute("SELECT count(*) FROM t").fetchone()[0]
    base.close()
    expect(count == 2 * place.size(60, 15), f"two writers left {count} rows")

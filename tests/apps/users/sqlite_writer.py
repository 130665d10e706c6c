# SPDX-License-Identifier: GPL-2.0-only
"""A process that adds rows to an SQLite database, each in a transaction, and prints a row's number once it
is committed.

    sqlite_writer.py DATABASE JOURNAL-MODE [COUNT]
"""

import sqlite3
import sys

TABLE = "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, key INTEGER, value BLOB); CREATE INDEX IF NOT EXISTS k ON t (key)"


def connect(path, mode=None):
    base = sqlite3.connect(path, timeout=60, isolation_level=None)
    # Not FULL: in a mode where a commit deletes the journal, FULL leaves the deletion unsynced. Then a
    # power cut may undo the commit.
    base.execute("PRAGMA synchronous=EXTRA")
    if mode:
        found = base.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
        if found != mode:
            raise RuntimeError(f"journal mode {found}, not {mode}")
    return base


def write(path, mode, count=1 << 30):
    base = connect(path, mode)
    base.executescript(TABLE)
    for _ in range(count):
        print(base.execute("INSERT INTO t (key, value) VALUES (1, zeroblob(700))").lastrowid, flush=True)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))

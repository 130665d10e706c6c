# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL with a standby: a connection (its protocol as far as needed), and how nodes change their roles.

Every error after a statement was sent is an OSError or a ValueError: the outcome is unknown then.
"""

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from vm.settings import CHECKOUT, SetupError

from .ledger import Found

ANSWER = 60             # seconds
DATABASE = "/srv/data/postgres"
EMPTY = CHECKOUT / "build/cluster/postgres"
SCRIPT = CHECKOUT / "tests/cluster/nodes/postgres"
TABLES = """
    CREATE TABLE rows (writer int, number int, value text, PRIMARY KEY (writer, number));
    CREATE TABLE counters (writer int PRIMARY KEY, number int)"""
WRITE = """
    BEGIN;
    INSERT INTO rows VALUES ({0}, {1}, '{2}');
    INSERT INTO counters VALUES ({0}, {1}) ON CONFLICT (writer) DO UPDATE SET number = greatest(counters.number, {1});
    COMMIT"""
FOLLOWS = "SELECT pg_current_wal_lsn() FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '{}'"
HAS = "SELECT 1 FROM pg_stat_replication WHERE flush_lsn >= '{}'"
SETTLE = 1              # seconds for all processes to read new settings, and for the WAL of a moment to reach the standby


class Connection:
    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER)
        self._stream = self._socket.makefile("rb")
        self._send(b"", struct.pack("!i", 3 << 16) + b"user\0postgres\0database\0postgres\0\0")
        self._rows()

    def close(self):
        self._socket.close()

    def sql(self, words):
        """The rows of the answer, each a tuple of strings."""
        self._send(b"Q", words.encode() + b"\0")
        return self._rows()

    def write(self, writer, number, value):
        self.sql(WRITE.format(writer, number, value))

    def found(self):
        rows = {(int(writer), int(number)): value for writer, number, value in self.sql("SELECT * FROM rows")}
        return Found(rows, {int(writer): int(number) for writer, number in self.sql("SELECT * FROM counters")})

    def _send(self, kind, content):
        self._socket.sendall(kind + struct.pack("!i", 4 + len(content)) + content)

    def _rows(self):
        """What comes until the server is ready for the next statement."""
        rows, error = [], None
        while (message := self._message())[0] != b"Z":
            kind, content = message
            if kind == b"D":
                rows.append(_fields(content))
            elif kind in b"EN":             # a warning may say that a commit was not replicated
                error = content.replace(b"\0", b" ").decode(errors="replace")
                if " SFATAL " in f" {error}":
                    break
        if error:
            raise ValueError(f"PostgreSQL: {error}")
        return rows

    def _message(self):
        head = self._stream.read(5)
        if len(head) < 5:
            raise ConnectionError("PostgreSQL closed the connection")
        kind, length = struct.unpack("!ci", head)
        content = self._stream.read(length - 4)
        if len(content) < length - 4:
            raise ConnectionError("PostgreSQL closed the connection")
        return kind, content


def _fields(content):
    """Of a row, which has no null."""
    fields, at = [], 2
    while at < len(content):
        length = struct.unpack_from("!i", content, at)[0]
        fields.append(content[at + 4:at + 4 + length].decode())
        at += 4 + length
    return tuple(fields)


class Engine:
    name, port, has_copy = "postgres", 5432, True

    def __init__(self, synchronous):
        self._standbys = "*" if synchronous else ""
        _initialize()

    def connect(self, node):
        return Connection(node.ports[self.port])

    def begin(self, primary, standby):
        primary.run(f"{SCRIPT} primary")
        self._sql(primary, TABLES)
        self.rejoin(standby, primary, replaced=True)

    def resume(self, node):
        """Starts it after a boot with what is there, or anew if nothing is."""
        if node.status(f"test -e {DATABASE}/PG_VERSION")[0] == 0:
            node.run(f"{SCRIPT} again")
        else:
            node.run(f"{SCRIPT} primary")
            self._sql(node, TABLES)

    def promote(self, node):
        """The node takes writes, and acknowledges what it alone has."""
        if self._sql(node, "SELECT pg_is_in_recovery()") == [("t",)]:
            node.run(f"{SCRIPT} promote")
        self._set_standbys(node, "")

    def rejoin(self, node, primary, replaced):
        """The node becomes a standby; from now on writes wait for it."""
        node.run(f"{SCRIPT} {'standby' if replaced else 'rewind'} {primary.name}")
        self._set_standbys(primary, self._standbys)

    def follows(self, _standby, primary):
        """True if the standby has all that was acknowledged, and will have what will be."""
        state = FOLLOWS.format("sync" if self._standbys else "async")
        if not self._sql(primary, state):
            return False
        time.sleep(SETTLE)
        position = self._sql(primary, state)
        time.sleep(SETTLE)
        return bool(position and self._sql(primary, HAS.format(position[0][0])))

    def _set_standbys(self, node, names):
        self._sql(node, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self._sql(node, "SELECT pg_reload_conf()")

    def _sql(self, node, words):
        connection = self.connect(node)
        try:
            return connection.sql(words)
        finally:
            connection.close()


def _initialize():
    """An empty database, made once on the host."""
    if EMPTY.exists():
        return
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not programs or os.geteuid() != 0:
        raise SetupError("PostgreSQL is missing, or this user isn't root: run scripts/setup --for cluster")
    EMPTY.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.chown(folder, "postgres")
        subprocess.run(["runuser", "-u", "postgres", "--", programs[-1], "-D", f"{folder}/new", "-A", "trust", "--no-locale",
                        "--data-checksums", "--wal-segsize=1", "--no-sync"], cwd="/", check=True, stdout=subprocess.DEVNULL)
        made = EMPTY.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(f"{folder}/new", made)
        made.rename(EMPTY)

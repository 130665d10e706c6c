# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL whose WAL goes to new files: wal_recycle=off, segments of 1 MiB, a small max_wal_size. Inserts, a transaction each.

wal_init_zero is on, as by default: a new segment is written all over with zeros, synced and renamed before it is used. The
data folder is made once in memory and copied to where the workload is, as making it takes long in an emulated machine.
"""

import os
import pathlib
import shutil
import subprocess

from .. import cost
from ..commands import CommandFailed, run
from .redis import check_runs, wait_until

FRESH, SOCKETS, LOG = "/dev/shm/bench-postgres", "/run/bench-postgres", "/run/bench-postgres.log"
CLIENTS, VALUE = 4, 6000
SETTINGS = {"wal_recycle": "off", "max_wal_size": "8MB", "min_wal_size": "2MB", "listen_addresses": "", "shared_buffers": "64MB",
            "unix_socket_directories": SOCKETS}
AS_ITS_USER = ("runuser", "-u", "postgres", "--")
SCRIPT = f"INSERT INTO t (value) VALUES (repeat(md5(random()::text), {VALUE // 32 + 1}));\n"


def inserts():
    """Transactions/s of pgbench with some clients."""
    def measure(folder: str, seconds: float) -> dict:
        if not os.path.isdir(FRESH):
            install()
        shutil.copytree(FRESH, f"{folder}/db")
        run("chown", "-R", "postgres:", f"{folder}/db")
        os.makedirs(SOCKETS, exist_ok=True)
        run("chown", "postgres:", SOCKETS)
        script = f"{SOCKETS}/insert.sql"
        pathlib.Path(script).write_text(SCRIPT)
        with Server(f"{folder}/db"):
            sql("CREATE TABLE t (id bigserial PRIMARY KEY, value text)")
            sql("ALTER TABLE t ALTER value SET STORAGE PLAIN")      # not compressed, not elsewhere
            sql("CHECKPOINT")
            os.sync()
            first = segment()
            with cost.Spent() as spent:
                said = run(*AS_ITS_USER, program("pgbench"), "-h", SOCKETS, "-n", "-c", str(CLIENTS), "-T", str(round(seconds)),
                           "-f", script, "postgres")
            segments = segment() - first
        with Server(f"{folder}/db"):
            check(processed(said))
        return {"value": rate(said), "segments": segments, **spent.each(processed(said))}
    return measure


def program(name: str) -> str:
    """Of the newest PostgreSQL that is installed."""
    newest = max(pathlib.Path("/usr/lib/postgresql").iterdir(), key=lambda path: int(path.name))
    return str(newest / "bin" / name)


def install() -> None:
    """A new database in memory."""
    os.makedirs(FRESH)
    run("chown", "postgres:", FRESH)
    run(*AS_ITS_USER, program("initdb"), "-D", FRESH, "--wal-segsize=1", "-A", "trust", "--no-sync", "--no-locale", timeout=600)


def sql(words: str) -> str:
    return run(*AS_ITS_USER, program("psql"), "-h", SOCKETS, "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", words,
               "postgres").strip()


def segment() -> int:
    """The number of the WAL segment that is being written."""
    name = sql("SELECT pg_walfile_name(pg_current_wal_lsn())")
    return int(name[8:16], 16) * 4096 + int(name[16:], 16)      # 4096 segments of 1 MiB make a log of 4 GiB


def rate(said: str) -> float:
    """What pgbench says of itself. It must say that no transaction failed."""
    lines = dict(line.split(maxsplit=2)[::2] for line in said.splitlines() if line.startswith("tps ="))
    if "number of failed transactions: 0 " not in said or not lines:
        raise CommandFailed(f"pgbench: {said[-1000:]}")
    return float(lines["tps"].split()[0])


def processed(said: str) -> int:
    """The number of transactions, by pgbench's words."""
    line = next(line for line in said.splitlines() if line.startswith("number of transactions actually processed:"))
    return int(line.rpartition(":")[2].split("/")[0])


def check(transactions: int) -> None:
    """As many rows, and values, as transactions, in a server that was started anew."""
    found = sql(f"SELECT count(*), count(DISTINCT id), sum((length(value) = {32 * (VALUE // 32 + 1)})::int) FROM t")
    if found != f"{transactions}|{transactions}|{transactions}":
        raise ValueError(f"PostgreSQL has {found} rows, ids and values of the right length after {transactions} inserts")


class Server:
    """postgres in a folder."""

    def __init__(self, folder: str):
        self._folder = folder

    def __enter__(self):
        options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with open(LOG, "ab") as log:
            self._process = subprocess.Popen([*AS_ITS_USER, program("postgres"), "-D", self._folder, *options],
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until(self._answers, "postgres to answer", 120)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        """A fast shutdown, which begins with a checkpoint."""
        if self._process.poll() is None:
            subprocess.run([*AS_ITS_USER, program("pg_ctl"), "-D", self._folder, "-m", "fast", "-w", "stop"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120)
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        check_runs(self._process, "postgres", LOG)
        return not subprocess.run([program("pg_isready"), "-q", "-h", SOCKETS], stdin=subprocess.DEVNULL).returncode

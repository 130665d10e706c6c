# SPDX-License-Identifier: GPL-2.0-only
"""MariaDB, every transaction made durable (its default), with sysbench's oltp_insert over a Unix socket.

The data folder is made once in memory and copied to where the workload is: making it takes a minute in an emulated machine.
"""

import os
import shutil
import socket
import subprocess

from .. import cost
from ..commands import CommandFailed, run
from .redis import RAMP, check_runs, wait_until

FRESH, SOCKET = "/dev/shm/bench-mariadb", "/run/bench-mariadb.sock"
SERVER = ["mariadbd", "--no-defaults", "--user=root", "--skip-networking", f"--socket={SOCKET}", "--innodb-log-file-size=32M",
          "--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=1"]
SYSBENCH = ["sysbench", "oltp_insert", "--db-driver=mysql", f"--mysql-socket={SOCKET}", "--mysql-user=root", "--mysql-db=test",
            "--tables=4", "--table-size=1000"]


def inserts(threads: int):
    def measure(folder: str, seconds: float) -> dict:
        if not os.path.isdir(FRESH):
            install()
        shutil.copytree(FRESH, f"{folder}/db")
        os.sync()
        with Server(f"{folder}/db"):
            run(*SYSBENCH, "prepare")
            with cost.Spent() as spent:
                output = run(*SYSBENCH, f"--threads={threads}", f"--time={round(seconds + RAMP)}", "run")
        each = rate(output, threads, round(seconds + RAMP))
        return {"value": each, **spent.each(each * round(seconds + RAMP))}
    return measure


def install() -> None:
    """An empty database server's folder."""
    run("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={FRESH}", "--innodb-log-file-size=32M", timeout=600)


def rate(output: str, threads: int, seconds: float) -> float:
    """Transactions a second, by what sysbench said. It must have done some, without an error, with these threads for that long."""
    said = {name.strip(): words.strip() for name, _, words in (line.partition(":") for line in output.splitlines())}
    if not int(said["transactions"].split()[0]) or int(said["ignored errors"].split()[0]):
        raise CommandFailed(f"sysbench: {said['transactions']} transactions, {said['ignored errors']} errors")
    if said["Number of threads"] != str(threads) or float(said["total time"].rstrip("s")) < 0.9 * seconds:
        raise CommandFailed(f"sysbench was to run {threads} threads for {seconds:g} s: {said['Number of threads']}, {said['total time']}")
    return float(said["transactions"].split("(")[1].split()[0])


class Server:
    """mariadbd in a folder. Killed at the end: its folder is removed anyhow."""

    def __init__(self, folder: str):
        self._folder = folder

    def __enter__(self):
        with open("/run/bench-mariadb.log", "wb") as log:
            self._process = subprocess.Popen([*SERVER, f"--datadir={self._folder}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until(self._greets, "mariadbd to answer", 120)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        self._process.kill()
        self._process.wait()

    def _greets(self) -> bool:
        check_runs(self._process, "mariadbd", "/run/bench-mariadb.log")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            try:
                connection.connect(SOCKET)
                return bool(connection.recv(1))
            except OSError:
                return False

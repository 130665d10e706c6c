# SPDX-License-Identifier: GPL-2.0-only
"""Redis with appendfsync always, unmodified, set upon by redis-benchmark over TCP on the loopback interface.

The rate is what the server answered in a fixed time, by its own count. So slow and fast systems run equally long, and the
start doesn't count.
"""

import subprocess
import time
from contextlib import contextmanager

from .. import cost, resp

RAMP = 0.5              # seconds before counting starts
SERVER = ["redis-server", "--bind", "127.0.0.1", "--protected-mode", "no", "--save", "", "--appendonly", "yes",
          "--auto-aof-rewrite-percentage", "0"]
LOGGED = 45             # bytes of a SET in the log: its name, a key of 16 bytes and a value of 3, each with its length
BENCHMARK = ["redis-benchmark", "-r", "100000"]


def sets(clients: int):
    def measure(folder: str, seconds: float) -> dict:
        with Server(folder) as server, load("set", "-c", str(clients)) as sender:
            return rate(server.connection, "set", sender, seconds)
    return measure


@contextmanager
def load(command: str, *options: str):
    """redis-benchmark, which sends until the end."""
    sender = subprocess.Popen([*BENCHMARK, "-q", "-t", command, "-n", "100000000", *options], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield sender
    finally:
        sender.kill()
        sender.wait()


def rate(connection, command: str, sender: subprocess.Popen, seconds: float) -> dict:
    """Commands a second that the server answers, and logs; and what each costs."""
    wait_until(lambda: calls(connection, command) > 0, "redis-benchmark to begin")
    time.sleep(RAMP)
    with cost.Spent() as spent:
        before = calls(connection, command)
        logged = log_size(persistence(connection))
        time.sleep(seconds)
        logged = log_size(persistence(connection)) - logged
        after = calls(connection, command)
    if sender.poll() is not None:
        raise RuntimeError(f"redis-benchmark ended early, with status {sender.returncode}")
    check_logged(after - before, logged)
    return {"value": (after - before) / spent.seconds, **spent.each(after - before)}


class Server:
    """redis-server in a folder; `connection` is to it. Ends without saving. A command may run it."""

    def __init__(self, folder: str, fsync: str = "always", under: tuple[str, ...] = ()):
        self._folder = folder
        self._command = [*under, *SERVER, "--appendfsync", fsync, "--dir", folder]

    def __enter__(self):
        self._log = open(f"{self._folder}/redis.log", "wb")
        self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        try:
            wait_until(self._answers, "redis-server to answer")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        self._log.close()

    def _answers(self) -> bool:
        check_runs(self.process, "redis-server", f"{self._folder}/redis.log")
        try:
            self.connection = resp.Connection()
            return self.connection.call("PING") == b"PONG"      # -LOADING while it reads the log
        except (OSError, resp.ErrorReply):
            return False


def calls(connection, command: str = "set") -> int:
    return parse_calls(connection.call("INFO", "commandstats").decode(), command)


def parse_calls(info: str, command: str = "set") -> int:
    """How often the server has executed a command."""
    for line in info.splitlines():
        if line.startswith(f"cmdstat_{command}:"):
            return int(line.partition("calls=")[2].partition(",")[0])
    return 0


def persistence(connection) -> str:
    return connection.call("INFO", "persistence").decode()


def log_size(info: str) -> int:
    """Of the append-only file, in bytes. The server must have one, and every write to it must have succeeded."""
    said = dict(line.partition(":")[::2] for line in info.splitlines())
    if said.get("aof_enabled") != "1" or said.get("aof_last_write_status") != "ok":
        raise RuntimeError(f"redis-server logs nothing, or a write failed: aof_enabled {said.get('aof_enabled')}, "
                           f"aof_last_write_status {said.get('aof_last_write_status')}")
    return int(said["aof_current_size"])


def check_logged(sets: int, size: int) -> None:
    """The log grew by that many SETs. The counts are read one after the other, so a tenth may be missing at either end."""
    if size < 0.8 * sets * LOGGED:
        raise RuntimeError(f"redis-server answered {sets} SETs and logged {size} bytes, less than {LOGGED} each")


def check_runs(process: subprocess.Popen, name: str, log: str) -> None:
    """Says what a server wrote to its log if it has ended."""
    if process.poll() is not None:
        with open(log, errors="replace") as words:
            raise RuntimeError(f"{name} ended with status {process.returncode}: {words.read()[-2000:]}")


def wait_until(true, what: str, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            raise RuntimeError(f"waited {seconds:g} s for {what}")
        time.sleep(0.02)

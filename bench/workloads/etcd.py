# SPDX-License-Identifier: GPL-2.0-only
"""etcd, a single member, with its defaults: each put is synced to its log before it is answered. Clients use its HTTP gateway.

The log's segments are 64 MiB, allocated beforehand under another name and renamed.
"""

import json
import os
import socket
import subprocess
import threading
import time
from base64 import b64encode

from .. import cost
from . import guest_only
from .redis import RAMP, check_runs, wait_until

PORT, PEERS, CLIENTS, VALUE = 2379, 2380, 8, 256
LOG = "/run/bench-etcd.log"


def puts():
    """Puts/s with some clients, each of which sends the next put when the last was answered."""
    def measure(folder: str, seconds: float) -> dict:
        guest_only.install("etcd")
        with Server(folder) as server:
            clients = [Client(number) for number in range(CLIENTS)]
            os.sync()
            for client in clients:
                client.start()
            time.sleep(RAMP)
            with cost.Spent() as spent:
                before = answered(clients)
                time.sleep(seconds)
                after = answered(clients)
            for client in clients:
                client.stop()
            server.stop()
            server.start()
            check(Connection(), [client.answered for client in clients])
        return {"value": (after - before) / spent.seconds, "puts": answered(clients), **spent.each(after - before)}
    return measure


def answered(clients) -> int:
    return sum(client.answered for client in clients)


def encoded(words: str) -> str:
    return b64encode(words.encode()).decode()


def key(client: int, number: int) -> str:
    return f"{client}/{number:08}"


def value(client: int, number: int) -> str:
    return f"{client} {number} ".ljust(VALUE, "v")


def check(connection, puts: list[int]) -> None:
    """A server that was started anew: as many revisions as puts were answered, and each key with its value."""
    for client, count in enumerate(puts):
        answer = connection.call("range", key=encoded(f"{client}/"), range_end=encoded(f"{client}0"))
        revision = int(answer["header"]["revision"])
        if revision != 1 + sum(puts):
            raise ValueError(f"etcd: revision {revision} after {sum(puts)} puts, the first of which made revision 2")
        found = [(pair["key"], pair["value"]) for pair in answer.get("kvs", [])]
        if found != [(encoded(key(client, number)), encoded(value(client, number))) for number in range(count)]:
            raise ValueError(f"etcd: {len(found)} keys of client {client}, or other values than its {count} puts")


class Server:
    """etcd in a folder."""

    def __init__(self, folder: str):
        self._folder = folder

    def __enter__(self):
        self.start()
        return self

    def start(self) -> None:
        ours, peers = f"http://127.0.0.1:{PORT}", f"http://127.0.0.1:{PEERS}"
        with open(LOG, "ab") as log:
            self._process = subprocess.Popen(
                ["etcd", "--data-dir", f"{self._folder}/etcd", "--listen-client-urls", ours, "--advertise-client-urls", ours,
                 "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until(self._answers, "etcd to answer", 120)
        except BaseException:
            self.__exit__()
            raise

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def __exit__(self, *exception):
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        check_runs(self._process, "etcd", LOG)
        try:
            return "header" in Connection().call("range", key=encoded("a"))
        except (OSError, ValueError):
            return False


class Connection:
    """HTTP, one request after the other."""

    def __init__(self):
        self._file = socket.create_connection(("127.0.0.1", PORT), 60).makefile("rwb")

    def call(self, what: str, **arguments) -> dict:
        content = json.dumps(arguments).encode()
        self._file.write(b"POST /v3/kv/%s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                         % (what.encode(), len(content)) + content)
        self._file.flush()
        status = self._file.readline()
        if b" 200 " not in status:
            raise ValueError(f"etcd said {status!r}")
        headers = {}
        while line := self._file.readline().strip():
            name, _, words = line.partition(b":")
            headers[name.lower()] = words.strip()
        return json.loads(self._content(headers))

    def _content(self, headers: dict) -> bytes:
        if b"content-length" in headers:
            return self._file.read(int(headers[b"content-length"]))
        content = b""
        while size := int(self._file.readline(), 16):       # chunked
            content += self._file.read(size)
            self._file.readline()
        self._file.readline()
        return content


class Client(threading.Thread):
    """A connection, and how many of its puts were answered."""

    def __init__(self, number: int):
        super().__init__(daemon=True)
        self.answered = 0
        self._number, self._done, self._problem = number, False, None
        self._connection = Connection()

    def run(self) -> None:
        try:
            while not self._done:
                self._connection.call("put", key=encoded(key(self._number, self.answered)),
                                      value=encoded(value(self._number, self.answered)))
                self.answered += 1
        except (OSError, ValueError) as problem:
            self._problem = problem

    def stop(self) -> None:
        """After the put that is on its way."""
        self._done = True
        self.join(60)
        if self._problem or self.is_alive():
            raise RuntimeError(f"etcd's client {self._number}: {self._problem or 'has no answer'}")

# SPDX-License-Identifier: GPL-2.0-only
"""Redis with appendfsync always: a load, the log rewritten under it, SIGKILL, restart. The data set is
the same each time."""

import subprocess
import threading
import time

from place import Failure, call, expect


def run(place):
    server = Server(place.folder)
    server.start()
    try:
        server.load(place.size(1500, 300))
        rewritten = threading.Thread(target=server.rewrite)
        rewritten.start()
        server.load(place.size(1200, 200))
        rewritten.join()
        expect(server.rewritten, "the log was not rewritten")
        server.load(place.size(500, 100))
        server.same_after("DEBUG", "LOADAOF")
        server.same_after_kill()
        call("redis-check-aof", place.folder / "appendonlydir" / "appendonly.aof.manifest")
        server.cli("SAVE")
        server.load(place.size(300, 100))
        server.same_after_kill()
        server.cli("SHUTDOWN")
        server.process.wait(30)
        call("redis-check-rdb", place.folder / "dump.rdb")
    finally:
        server.process.kill()
        server.process.wait()


class Server:
    def __init__(self, folder):
        self.folder, self.socket, self.rewritten = folder, "/run/forebay-redis.sock", False

    def start(self):
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", str(self.folder), "--appendonly", "yes",
                 "--appendfsync", "always", "--save", "", "--enable-debug-command", "yes", "--auto-aof-rewrite-percentage", "0"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while True:
            try:
                if self.cli("PING").strip() == "PONG":
                    return
            except Failure:
                pass
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failure("redis-server does not answer:\n" + (self.folder / "server.log").read_text()[-3000:])
            time.sleep(0.2)

    def cli(self, *words):
        return call("redis-cli", "-s", self.socket, *words)

    def load(self, requests):
        call("redis-benchmark", "-s", self.socket, "-q", "-c", "8", "-r", "500", "-n", requests, "-d", "200",
             "-t", "set,incr,lpush,rpop,sadd,hset")

    def rewrite(self):
        self.cli("BGREWRITEAOF")
        for _ in range(300):
            info = dict(line.strip().split(":", 1) for line in self.cli("INFO", "persistence").splitlines() if ":" in line)
            if info["aof_rewrite_in_progress"] == "0" and info["aof_rewrite_scheduled"] == "0":
                self.rewritten = info["aof_last_bgrewrite_status"] == "ok"
                return
            time.sleep(0.2)

    def digest(self):
        return self.cli("DBSIZE").strip(), self.cli("DEBUG", "DIGEST").strip()

    def same_after(self, *words):
        before = self.digest()
        answer = self.cli(*words).strip()
        expect(answer == "OK", f"{words}: {answer}")
        expect(self.digest() == before, f"{words}: {before} has become {self.digest()}")

    def same_after_kill(self):
        before = self.digest()
        self.process.kill()
        self.process.wait()
        self.start()
        expect(self.digest() == before, f"SIGKILL, restart: {before} has become {self.digest()}")

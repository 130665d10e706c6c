# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL: initdb, pgbench, an immediate stop in the middle and the restart after it, every table and index checked,
then the checksums of all pages after a clean stop."""

import re
import shutil
import subprocess
import time

from place import Failure, as_user, call, expect

PROGRAMS = "/usr/lib/postgresql/15/bin/"
SOCKETS = "/run/postgresql"


def run(place):
    server = Server(place.folder)
    server.create()
    try:
        work(place, server)
    except Failure as failure:
        server.stop("immediate")        # or forebay could not be unmounted
        raise Failure(f"{failure}\nThe server's log:\n{server.log.read_text()[-3000:]}") from None
    call(PROGRAMS + "pg_checksums", "--check", "-D", server.data, user="postgres")
    place.note(f"{server.count} transactions")


def work(place, server):
    for method in ("fdatasync", "open_datasync"):       # O_DSYNC writes, too
        server.start(method)
        if method == "fdatasync":
            server.pgbench("-i", "-s", 1)
            server.sql("CREATE EXTENSION amcheck")
        server.count += server.transactions(clients=2, each=place.size(60, 20))
        server.check(exact=True)
        server.crash(more=place.size(30, 10))
        server.start(method)
        server.check(exact=False)
        if method == "fdatasync":
            for text in ("CREATE INDEX ON pgbench_accounts (abalance)", "VACUUM FULL pgbench_tellers", "CHECKPOINT"):
                server.sql(text)
            server.check_indexes()
        else:
            server.check_indexes("--table=pgbench_*")
        server.stop("fast")


class Server:
    def __init__(self, folder):
        self.data, self.log, self.count = folder / "data", folder / "log", 0
        shutil.chown(folder, "postgres", "postgres")

    def create(self):
        call(PROGRAMS + "initdb", "-D", self.data, "-k", "-A", "trust", "--no-locale", "-E", "UTF8", "--wal-segsize=1", user="postgres",
             timeout=300)

    def start(self, method="fdatasync"):
        settings = {"listen_addresses": "", "unix_socket_directories": SOCKETS, "wal_sync_method": method, "shared_buffers": "4MB",
                    "max_wal_size": "8MB", "min_wal_size": "2MB", "autovacuum": "on", "full_page_writes": "on"}
        words = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        try:
            call(PROGRAMS + "pg_ctl", "-D", self.data, "-l", self.log, "-o", words, "-w", "-t", "120", "start", user="postgres")
        except Failure as failure:
            raise Failure(f"{failure}\n{self.log.read_text()[-4000:]}") from None

    def stop(self, how):
        call(PROGRAMS + "pg_ctl", "-D", self.data, "-m", how, "-w", "-t", "120", "stop", user="postgres")

    def sql(self, text):
        return call("psql", "-h", SOCKETS, "-XAt", "-v", "ON_ERROR_STOP=1", "-c", text, "postgres", user="postgres").strip()

    def pgbench(self, *words, **how):
        return call("pgbench", "-h", SOCKETS, *words, "postgres", user="postgres", **how)

    def transactions(self, clients, each):
        said = self.pgbench("-n", "-c", clients, "-j", clients, "-t", each)
        done = re.search(r"actually processed: (\d+)/(\d+)", said)
        expect(done and int(done[1]) == clients * each, said)
        return int(done[1])

    def crash(self, more):
        """An immediate stop, which is a crash to PostgreSQL, with clients at work, that have seen `more` commits at least."""
        argv = as_user("postgres", ["pgbench", "-h", SOCKETS, "-n", "-c", "2", "-T", "600", "postgres"])
        clients = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        before, end = self.count, time.monotonic() + 120
        while self.count < before + more:
            expect(time.monotonic() < end, f"in two minutes no {more} transactions, {self.count - before} only")
            time.sleep(0.5)
            self.count = self.history()
        self.stop("immediate")
        said, _ = clients.communicate(timeout=60)
        expect(clients.returncode != 0, f"pgbench has not noticed that the server went:\n{said}")

    def history(self):
        return int(self.sql("SELECT count(*) FROM pgbench_history"))

    def check(self, exact):
        """pgbench's invariant: four tables agree on the sum. And no transaction that was counted is missing."""
        sums = self.sql("""SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),
                        (SELECT sum(bbalance) FROM pgbench_branches), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)""")
        expect(len(set(sums.split("|"))) == 1, f"the tables disagree: {sums}")
        found = self.history()
        expect(found == self.count if exact else found >= self.count, f"{found} transactions in the history, {self.count} before")
        self.count = found

    def check_indexes(self, *which):
        """And the tables: `which`, as arguments of pg_amcheck, or all, the catalog's too."""
        call(PROGRAMS + "pg_amcheck", "-h", SOCKETS, "--heapallindexed", *which, "-d", "postgres", user="postgres", timeout=300)

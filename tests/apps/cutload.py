# SPDX-License-Identifier: GPL-2.0-only
"""Databases at work and the plug pulled, in the guest: checks what was acknowledged, then commits on until
the power goes.

    cutload.py FS ACKNOWLEDGED.json make|check|last

"ack CLIENT N" on standard output means: this client's rows 1 to N are committed. PostgreSQL has two such
clients beside a pgbench, SQLite one for each of three journal modes, Redis one.
"""

import json
import subprocess
import sys
import threading
import time

import lower
from place import Failure, as_user, call, expect
from users import postgresql, redis, sqlite

MODES = ("wal", "delete", "persist")
POSTGRES = ("pg1", "pg2")


def main(fs, file, what):
    with open(file, encoding="utf-8") as stream:
        acknowledged = json.load(stream)
    if what == "make":
        lower.make(fs)
    begin = time.monotonic()
    lower.mount(fs)
    say(f"mounted after {time.monotonic() - begin:.2f} s: {lower.counters()['pages_recovered']} pages found")
    folders = {name: lower.TOP / name for name in ("postgresql", "sqlite", "redis")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    server, store = postgresql.Server(folders["postgresql"]), redis.Server(folders["redis"])
    if what == "make":
        server.create()
    server.start()
    store.start()
    if what == "make":
        server.pgbench("-i")
        server.sql("CREATE TABLE acks (client text, n int, filler text, PRIMARY KEY (client, n)); CREATE EXTENSION amcheck")
    else:
        check(acknowledged, server, store, folders["sqlite"])
    if what == "last":
        server.stop("fast")
        call(postgresql.PROGRAMS + "pg_checksums", "--check", "-D", server.data, user="postgres")
        store.cli("SHUTDOWN")
        store.process.wait(30)
        say(lower.unmount_and_compare(fs))
        return
    work(acknowledged, server, store, folders["sqlite"])


def check(acknowledged, server, store, folder):
    """Each client's rows are 1 to N without a hole, and N is at least what was acknowledged. The
    databases find no damage."""
    for client in POSTGRES:
        count, last = server.sql(f"SELECT count(*), coalesce(max(n), 0) FROM acks WHERE client = '{client}'").split("|")
        judge(client, acknowledged, int(count), int(last))
    server.count = -1
    server.check(exact=False)
    server.check_indexes()
    for mode in MODES:
        base = sqlite.connect(folder / f"{mode}.db")
        sqlite.check(base)
        judge(mode, acknowledged, *base.execute("SELECT count(*), coalesce(max(id), 0) FROM t").fetchone())
        base.close()
    value = store.cli("GET", "last").strip()
    judge("redis", acknowledged, int(store.cli("SCARD", "rows")), int(value or 0))


def judge(client, acknowledged, count, last):
    expect(count == last and last >= acknowledged[client],
           f"{client}: {acknowledged[client]} rows were acknowledged; {count} are there, the last is {last}")


def work(acknowledged, server, store, folder):
    for client in POSTGRES:
        threading.Thread(target=guarded, args=(insert, client, server)).start()
    for mode in MODES:
        threading.Thread(target=guarded, args=(write, mode, folder)).start()
    threading.Thread(target=guarded, args=(add, store)).start()
    server.pgbench("-n", "-c", "1", "-T", "600", timeout=700)


def guarded(client, *arguments):
    try:
        client(*arguments)
    except Exception as failure:
        say(f"client {arguments}: {failure}")


def insert(client, server):
    """One psql, a statement at a time; its answer comes after the commit."""
    number = int(server.sql(f"SELECT coalesce(max(n), 0) FROM acks WHERE client = '{client}'"))
    psql = subprocess.Popen(as_user("postgres", ["psql", "-h", postgresql.SOCKETS, "-qXAt", "postgres"]), text=True, bufsize=1,
                            cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while True:
        number += 1
        psql.stdin.write(f"INSERT INTO acks VALUES ('{client}', {number}, repeat('x', {number * 37 % 900})) RETURNING n;\n")
        answer = psql.stdout.readline().strip()
        if answer != str(number):
            raise Failure(f"psql: {answer}")
        say(f"ack {client} {number}")


def write(mode, folder):
    base = sqlite.connect(folder / f"{mode}.db", mode)
    base.executescript(sqlite.TABLE)
    while True:
        row = base.execute("INSERT INTO t (key, value) VALUES (1, randomblob(abs(random()) % 3000))").lastrowid
        say(f"ack {mode} {row}")


def add(store):
    """redis-cli, a transaction at a time."""
    number = int(store.cli("GET", "last").strip() or 0)
    cli = subprocess.Popen(["redis-cli", "-s", store.socket], text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    while True:
        number += 1
        cli.stdin.write(f'EVAL "redis.call(\'SADD\', KEYS[1], ARGV[1]) redis.call(\'SET\', KEYS[2], ARGV[1]) return ARGV[1]" '
                        f"2 rows last {number}\n")
        answer = cli.stdout.readline().strip().strip('"')
        if answer != str(number):
            raise Failure(f"redis-cli: {answer}")
        say(f"ack redis {number}")


_lock = threading.Lock()


def say(text):
    with _lock:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as failure:
        say(str(failure))
        sys.exit(1)

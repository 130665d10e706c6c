# SPDX-License-Identifier: GPL-2.0-only
"""docs/recipes: the commands of the pages, and what must be true after them."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest
from recipes import ROOT, recipe
from recipes_machine import (CACHE, DB, DISKS, FSTAB, MEMORIES, SSD, back, blank, crash, failing_ssd, finish, has, prepared_on, say, start,
                             status, stop, two_memories, unmount_all, wait_until, written)
from stack import run

PROGRAMS = ("mariadbd", "etcd", "postfix", "mdadm", "lvcreate", "mokutil", "jq")
HEADERS = Path(f"/usr/src/linux-headers-{os.uname().release}")

pytestmark = pytest.mark.slow       # on the debug kernel the servers take too long


@pytest.fixture(name="machine", scope="module", autouse=True)
def machine_fixture():
    """Two persistent memories, and the programs of the recipes."""
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    assert not missing, f"not installed: {', '.join(missing)}. `scripts/setup --for recipes` installs what the recipes need."
    two_memories()
    run("modprobe forebay")
    shutil.copyfile(FSTAB, "/run/fstab.before")


@pytest.fixture(name="bare_devices", autouse=True)
def bare_devices_fixture(machine):
    """Each recipe begins with empty devices, and without lines in /etc/fstab."""
    del machine
    blank()
    yield
    shutil.copyfile("/run/fstab.before", FSTAB)
    blank()


@pytest.fixture(name="prepared")
def prepared_fixture(bare_devices):
    """The recipe that all others begin with."""
    del bare_devices
    recipe("prepare")


# Programs

def test_redis(prepared):
    del prepared
    recipe("redis")
    assert say(["redis-cli"], [f"SET key{n} {n}" for n in range(200)]).split() == ["OK"] * 200
    crash()
    back("/var/lib/redis")
    start("redis-server")
    assert run("redis-cli dbsize").strip() == "200"
    finish("redis-server")


def test_postgresql(prepared):
    del prepared
    recipe("postgresql")
    psql = ["runuser", "-u", "postgres", "--", "psql", "-qXAt", "-v", "ON_ERROR_STOP=1"]
    say(psql, ["CREATE TABLE t (n int PRIMARY KEY);"])
    assert say(psql, [f"INSERT INTO t VALUES ({n}) RETURNING n;" for n in range(60)]).split() == [str(n) for n in range(60)]
    crash()
    back("/var/lib/postgresql")
    start("postgresql")
    assert say(psql, ["SELECT count(*) FROM t;"]).strip() == "60"
    finish("postgresql")


def test_mariadb(prepared):
    del prepared
    recipe("mariadb")
    say(["mariadb"], ["CREATE DATABASE test1; CREATE TABLE test1.t (n int PRIMARY KEY) ENGINE=InnoDB;"])
    say(["mariadb"], [f"INSERT INTO test1.t VALUES ({n});" for n in range(60)])
    crash()
    back("/var/lib/mysql")
    start("mariadb")
    assert say(["mariadb", "-N"], ["SELECT count(*) FROM test1.t;"]).strip() == "60"
    finish("mariadb")


INSERTS = """
import sqlite3, sys, time
base = sqlite3.connect(sys.argv[1], isolation_level=None)
for number in range(80):
    base.execute("INSERT INTO t (text) VALUES (?)", (f"row {number}",))
print("done", flush=True)
time.sleep(600)
"""


def test_sqlite(prepared):
    """In WAL mode, as on the page, and with the default journal."""
    del prepared
    recipe("sqlite")
    shutil.copy(DB / "app/app.db", DB / "app/default.db")
    run(f"sqlite3 {DB}/app/default.db 'PRAGMA journal_mode=delete'")
    for name in "app", "default":
        with subprocess.Popen(["/usr/bin/python3", "-c", INSERTS, DB / f"app/{name}.db"], stdout=subprocess.PIPE) as program:
            assert program.stdout.readline() == b"done\n"
            program.kill()      # before it closes the database, which would empty the WAL
    assert status()["names_recorded"] > 0
    crash()
    back()
    for name in "app", "default":
        with contextlib.closing(sqlite3.connect(DB / f"app/{name}.db")) as base:
            assert base.execute("SELECT count(*) FROM t").fetchone() == (80,)
            assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finish()


def test_etcd(prepared):
    del prepared
    recipe("etcd")
    for number in range(20):
        assert run(f"etcdctl put key{number} {number}").strip() == "OK"
    crash()
    back("/var/lib/etcd")
    start("etcd")
    assert len(run("etcdctl get --prefix --keys-only key").split()) == 21
    finish("etcd")


def test_rocksdb(prepared):
    del prepared
    recipe("rocksdb")
    crash()
    back()
    said = run(f"db_bench --db={DB}/rocksdb --use_existing_db --benchmarks=readrandom,readseq --num=300")
    assert "(300 of 300 found)" in said, said
    finish()


def test_mail(prepared):
    """Messages that were delivered, and messages that Postfix has taken and not delivered."""
    del prepared
    box = Path("/var/mail/root/new")
    recipe("mail")
    for number in range(20):
        say(["sendmail", "root"], ["Subject: delivered", "", f"{number}"])
    wait_until(lambda: box.exists() and len(list(box.iterdir())) == 20)
    stop("postfix")
    for number in range(10):
        say(["sendmail", "root"], ["Subject: taken", "", f"{number}"])
    crash()
    back("/var/spool/postfix", "/var/mail")
    assert len(list(box.iterdir())) == 20
    start("postfix")
    wait_until(lambda: len(list(box.iterdir())) == 30)
    assert sum("Subject: taken" in message.read_text() for message in box.iterdir()) == 10
    finish("postfix")


def test_advise():
    run(f"mkfs.ext4 -q {DISKS[0]}; mkdir -p {SSD}; mount {DISKS[0]} {SSD}")
    over = threading.Event()

    def work():
        while not over.is_set():
            with open(SSD / "file", "ab", buffering=0) as file:
                file.write(b"x" * 5000)
                os.fsync(file.fileno())

    program = threading.Thread(target=work)
    program.start()
    try:
        recipe("advise")
    finally:
        over.set()
        program.join()


# Devices

def test_replace_pmem(prepared):
    del prepared
    written("file")
    recipe("replace-pmem")
    assert status()["device"].startswith("/dev/pmem0.1") and has(DB, "file") == "new"
    written("other")
    finish()


def test_replace_ssd(prepared):
    del prepared
    written("file")
    recipe("replace-ssd")
    assert run(f"findmnt -no SOURCE --mountpoint {SSD}").strip() == DISKS[1] and has(DB, "file") == has(SSD, "file") == "new"
    written("other")
    finish()


def test_ssd_fails():
    with failing_ssd() as fail:
        recipe("prepare")
        written("file")
        fail()
        run(f"forebay drain {DB}", check=False)
        recipe("ssd-fails")
        recipe("ssd-fails-copy")
        assert run(f"findmnt -no SOURCE --mountpoint {SSD}").strip() == DISKS[1] and has(DB, "file") == "new"
        written("other")
        finish()


def test_pmem_is_gone(prepared):
    """What was written back is there; what was synced after that isn't."""
    del prepared
    written("file")
    crash()
    run(f"dd if=/dev/zero of={CACHE} bs=1M conv=fsync status=none", check=False)
    run(f"mount {SSD}")
    recipe("pmem-gone")
    recipe("without-pmem")
    assert has(DB, "file") == "old" and os.path.ismount(DB)
    unmount_all()
    run(f"e2fsck -fn {DISKS[0]}")


def test_another_machine(prepared):
    del prepared
    written("file")
    crash()
    recipe("what-it-holds")
    recipe("move-out")
    run(f"dd if=/dev/zero of={CACHE} bs=1M count=16 conv=fsync status=none")
    recipe("move-in")
    assert has(DB, "file") == "new"
    finish()
    Path("/root/cache.img").unlink()


def test_no_mirror_of_pmem():
    recipe("no-mirror-of-pmem")


def test_mirror():
    DB.mkdir(parents=True, exist_ok=True)
    recipe("mirror")
    (DB / "file").write_text("new", encoding="ascii")
    run(f"sync -f {DB}; umount {DB}; mdadm --quiet --stop /dev/md0")
    for half in "left", "right":
        run(f"forebay writelog remove --no-flush {half}")
    assert all(json.loads(run(f"forebay writelog status --json {memory}"))[0]["entries"] for memory in MEMORIES)
    run(f"dd if=/dev/zero of={MEMORIES[1]} bs=1M count=8 conv=fsync status=none")
    recipe("mirror-after-a-loss")
    assert has(DB, "file") == "new"
    recipe("mirror-again")
    run("mdadm --quiet /dev/md0 --fail /dev/mapper/left")
    run(f"umount {DB}; mount /dev/md0 {DB}")
    assert has(DB, "file") == "new"
    run(f"umount {DB}; e2fsck -fn /dev/md0; mdadm --quiet --stop /dev/md0")


# Backups

def test_backup(prepared):
    del prepared
    written("file")
    recipe("backup")
    assert has(Path("/root/backup"), "file") == "new" and has(SSD, "file") == "old"
    shutil.rmtree("/root/backup")
    finish()


def test_snapshot():
    run(f"pvcreate -qq {DISKS[1]}; vgcreate -qq vg {DISKS[1]}; lvcreate -qq -y -L 512M -n data vg")
    prepared_on("/dev/vg/data")
    written("file")
    assert has(SSD, "file") == "old"
    recipe("snapshot")
    assert has(Path("/mnt/snap"), "file") == "new"
    written("file", "newer")
    recipe("rollback")
    assert has(DB, "file") == "new"
    finish()
    run("vgremove -qq -f vg")


def test_snapshot_of_btrfs():
    prepared_on(DISKS[0], "btrfs")
    written("file")
    recipe("snapshot-btrfs")
    written("file", "newer")
    assert has(SSD / "snap", "file") == "new"
    unmount_all()
    run(f"btrfs check --readonly {DISKS[0]}")


# Upgrade

def test_upgrade(prepared):
    del prepared
    written("file")
    recipe("upgrade-too-early")
    installed, loaded = recipe("upgrade").split()
    assert installed == loaded and has(DB, "file") == has(SSD, "file") == "new"
    finish()


def test_cache_of_the_oldest_version():
    """An empty one. tests/formats reads caches of old versions that hold something."""
    run(f"xz -dc {ROOT}/tests/formats/4c15243/cache-empty.img.xz | dd of={CACHE} bs=1M iflag=fullblock conv=fsync status=none")
    run(f"mkfs.ext4 -q {DISKS[0]}; mkdir -p {SSD} {DB}; mount {DISKS[0]} {SSD}; mount -t forebay -o cache={CACHE} {SSD} {DB}")
    written("file")
    crash()
    run(f"mount {DISKS[0]} {SSD}; mount -t forebay -o cache={CACHE} {SSD} {DB}")
    assert has(DB, "file") == "new"
    finish()


# What spoils the machine for others comes last.

def test_bad_block(prepared):
    del prepared
    written("sound")
    written("file", "bad")      # the last one, since each drains before its newer contents
    crash()
    at = Path(CACHE).read_bytes().index(b"bad".ljust(4096))
    try:
        for sector in at // 512, at // 512 + 5:     # of one page, which is lost once
            Path("/sys/block/pmem0/badblocks").write_text(f"{sector} 1", encoding="ascii")
        run(f"mount {SSD}; mount {DB}")
        wait_until(lambda: status()["pages_lost"] == 1)
        recipe("bad-block")
        assert has(DB, "sound") == "new"
        unmount_all()
        for option in "", "--repair":               # which has nothing to repair
            checked = run(f"forebay check {option} {CACHE}; echo status $?")
            assert f"{CACHE}: 1 page of files lost" in checked and checked.endswith("status 4\n"), checked
    finally:
        unmount_all()
        two_memories()


@pytest.mark.skipif(not HEADERS.exists(), reason="sign-file comes with the headers of an installed kernel")
def test_unsigned(prepared):
    """The kernel demands signatures until the next boot, and knows none of ours."""
    del prepared
    unmount_all()
    run("modprobe -r forebay")
    recipe("sign")
    Path("/sys/module/module/parameters/sig_enforce").write_text("Y", encoding="ascii")
    recipe("unsigned")

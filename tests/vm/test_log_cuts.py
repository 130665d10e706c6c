# SPDX-License-Identifier: GPL-2.0-only
"""Append logs on forebay, mapped with MAP_SYNC: what power cuts leave, of our own driver and of Redis under the preload. A cut
is a copy, so one server goes through many. CPU caches are durable here: the emulated device can't see what a program flushes
itself. tests/lib/test_log.py has the states of caches that aren't."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import clean_up
from stack import MOUNT, PAGE, run
from test_cuts import LEFT, LEFT_LOWER, Pair
from test_emu import module_fixture

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "build/tests/log_driver"
emulated_devices = module_fixture
F_SETPIPE_SZ = 1031


class CpuPair(Pair):
    """Stores to the cache are durable at once."""

    cache_options = "--track --persistence cpu"


@pytest.fixture(name="pair")
def pair_fixture():
    """A fresh pair of file systems."""
    yield CpuPair()
    run(f"umount {LEFT}; umount {LEFT_LOWER}", False)
    clean_up()


def pattern(length, known=bytearray()):     # pylint: disable=dangerous-default-value
    """As the driver writes them; what was made once is kept."""
    known += bytes(0 if at % 7 == 6 else (at * 2654435761 % (1 << 64)) >> 13 & 0xff for at in range(len(known), length))
    return known[:length]


class Driver:
    """log_driver on a file of the mount; stops where it is told to."""

    def __init__(self, *words):
        self.process = subprocess.Popen([DRIVER, MOUNT / "log", "65536", *map(str, words)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        fcntl.fcntl(self.process.stdout, F_SETPIPE_SZ, PAGE)     # it is some hundred lines ahead at most

    def line(self):
        """A number that it says."""
        return int(self.process.stdout.readline())

    def kill(self):
        """Also if it has ended."""
        self.process.kill()
        self.process.communicate()


def left_of(folder):
    """The log on a copy, after its end was found."""
    size = int(run(f"{DRIVER} {folder}/log 65536 recover"))
    contents = (folder / "log").read_bytes()
    assert len(contents) == size
    return contents


@pytest.mark.parametrize("words, synced, written", [
    (["append", 10000, "sync"], 10000, 10000), (["append", 10000, "sync", "append", 30000], 10000, 40000),
    (["append", 5000, "sync", "append", 700000, "sync", "append", 500], 705000, 705500), (["append", 3000], 0, 3000)],
    ids=["synced", "more", "grown", "never"])
def test_cut(pair, words, synced, written):
    """The log ends at or behind the last sync, and has no gap; the mapping is a MAP_SYNC one."""
    driver = Driver(*words, "end", "wait")
    try:
        assert driver.line() == written
        mapped = Path(f"/proc/{driver.process.pid}/smaps").read_text(encoding="ascii").split("/log\n")[1]
        assert " sf " in mapped.split("VmFlags:")[1].splitlines()[0] + " "
        for folder in pair.after_cuts():
            if not synced and not (folder / "log").exists():
                continue
            contents = left_of(folder)
            assert synced <= len(contents) <= written
            assert contents == pattern(len(contents))
    finally:
        driver.kill()


def test_cut_while_it_grows(pair):
    """At any moment, with space allocated ahead and dropped behind."""
    driver = Driver("forever", 9000)
    try:
        for seed in range(12):
            for _ in range(5):
                said = driver.line()
            pair.cut(seed)
            pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
            contents = left_of(LEFT)
            run(f"umount {LEFT} && umount {LEFT_LOWER}")
            assert len(contents) >= said
            assert contents == pattern(len(contents))
            if said > 5 << 20:
                break
    finally:
        driver.kill()


def redis(folder, socket, *words):
    """Calls a server."""
    return run(f"redis-cli -s {folder}/{socket} {' '.join(map(str, words))}").strip()


def server(folder, socket="socket"):
    """redis-server under the preload, which answers when this returns."""
    words = f"forebay log-preload --chunk-size 64K -- redis-server --port 0 --unixsocket /tmp/{socket} --dir {folder} --save '' " \
        "--appendonly yes --appendfsync always"
    process = subprocess.Popen(words, shell=True, stdout=subprocess.DEVNULL)
    run(f"for i in $(seq 300); do redis-cli -s /tmp/{socket} ping 2>&1 | grep -q PONG && exit; sleep 0.1; done; exit 1")
    return process


@pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")
def test_redis(pair):
    """Every SET that was acknowledged before a cut is found after it, and redis-check-aof accepts the files."""
    process, number = server(MOUNT), 0
    try:
        for folder_number in range(2):
            for _ in range(40):
                number += 1
                assert redis("/tmp", "socket", "set", number, "x" * number) == "OK"
            if folder_number:
                redis("/tmp", "socket", "bgrewriteaof")
            for folder in pair.after_cuts():
                run(f"forebay log-preload -- redis-check-aof {folder}/appendonlydir/appendonly.aof.manifest")
                after = server(folder, "after")
                try:
                    assert int(redis("/tmp", "after", "dbsize")) >= number
                    assert redis("/tmp", "after", "get", number) == "x" * number
                    assert redis("/tmp", "after", "get", 1) == "x"
                finally:
                    run("redis-cli -s /tmp/after shutdown", False)
                    after.wait(60)
    finally:
        run("pkill -x redis-server", False)     # this machine is ours
        process.wait(60)

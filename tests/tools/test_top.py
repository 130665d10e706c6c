# SPDX-License-Identifier: GPL-2.0-only
"""forebay top: rates of made-up counters that change between two looks, as text and on a terminal."""

import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl

import pytest

from conftest import BUILD, DONE, FAILED, USAGE
from test_metrics import counters_of
from test_status import MOUNT_LINE, kernel     # noqa: F401: a fixture

assert callable(kernel)
LATER = {"pages_absorbed": 512 + 256, "pages_written_back": 256 + 50, "pages_out_of_sync": 100,
         "sync_latency_memory": "310000 <2048:60 <4096:49 <8192:1", "sync_latency_move": "4000000 <16384:200",
         "sync_latency_storage": "9000000 <1048576:9 <2097152:1"}


def test_nothing_in_use(forebay, kernel):       # noqa: F811
    result = forebay("top", "--count", "1", **kernel())
    assert (result.status, result.out, result.err) == (DONE, "No mounted cache, write log or transit cache.\n", "")


@pytest.mark.parametrize("arguments", [["--interval", "0"], ["--interval", "1s"], ["--count", "0"], ["--count", "1.5"], ["sda"]])
def test_bad_arguments(forebay, kernel, arguments):     # noqa: F811
    result = forebay("top", *arguments, **kernel())
    assert result.status == USAGE and arguments[-1] in result.err


def test_callers_without_the_module(forebay, kernel):   # noqa: F811
    result = forebay("top", "--callers", "--count", "1", **kernel())
    assert (result.status, result.out) == (FAILED, "") and "trac" in result.err


def change(root, **values):
    """What the made-up kernel shows from now on."""
    for key, value in values.items():
        (root / "sys/fs/forebay/pmem0" / key).write_text(f"{value}\n")


def test_rates(kernel, tmp_path):       # noqa: F811
    """Between two looks the counters grow by what LATER says; the second look has that, a second."""
    environment = {**os.environ, **kernel(MOUNT_LINE, pmem0={})}
    root = tmp_path / "root"
    with subprocess.Popen([BUILD / "forebay", "top", "--interval", "2", "--count", "2"], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as top:
        first = [top.stdout.readline() for _ in range(2)]
        begun = time.monotonic()
        change(root, **LATER)
        rest = top.stdout.read()
        took = time.monotonic() - begun
    assert top.returncode == 0 and 1 < took < 20
    assert re.split(r" {2,}", first[1].strip()) == ["/srv/my db", "10 %", "70 %", *"-" * 6, "-"]
    cells = re.split(r" {2,}", rest.splitlines()[-1].strip())
    assert cells[:3] == ["/srv/my db", "10 %", "70 %"]
    syncs, below = int(cells[3]), int(cells[4])
    assert 20 / (took + 1) <= syncs + 1 and syncs <= 20 / 1.5 and 2 * below - 1 <= syncs <= 2 * below + 1
    assert cells[5:7] == ["<2.05 us", "<2.1 ms"], "10 of 20 calls were in memory; of storage's 10 one was the longest"
    assert float(cells[7]) > float(cells[8]) > 0
    assert re.fullmatch(r"\d s", cells[9])


def test_every_kind(forebay, kernel, mapper, tmp_path):     # noqa: F811
    root = kernel(MOUNT_LINE, pmem0={})["FOREBAY_SYSROOT"]
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    mapper.log(**{**counters_of("writelog"), "regions": 3})
    pairs = counters_of("transit")
    mapper.device("quick", "forebay-transit", f"ok transit 1024/4096 {2 * len(pairs)} " +
                  " ".join(f"{key} {value}" for key, value in pairs.items()), "253:0 2 workers 3")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/dm-0").symlink_to("../../devices/dm-0")
    result = mapper("top", "--interval", "0.1", "--count", "2")
    assert result.status == DONE and not result.err
    lines = result.out.splitlines()
    assert [line.split("  ")[0] for line in lines if line and not line.startswith("/srv")] == \
        ["CACHE", "WRITE LOG", "fast", "TRANSIT CACHE", "quick"] * 2
    quick = [re.split(r" {2,}", line) for line in lines if line.startswith("quick")]
    assert quick == [["quick", "25 %", *"-------"], ["quick", "25 %", "0", "-", *"00000"]], "nothing changed"


def test_names_of_all_kinds(forebay, kernel):       # noqa: F811
    """They keep the columns in line, and can't steer the terminal."""
    line = MOUNT_LINE.replace("pmem0", "{}").replace("my\\040db", "{}")
    names = {"pmem0": "größe-" + "語" * 12, "pmem1": "a\\012b\\033[31m", "pmem2": "e\u0301" * 30}
    result = forebay("top", "--count", "1", **kernel(*(line.format(name, cache) for cache, name in names.items()), **{cache: {} for cache in names}))
    assert result.status == DONE
    shown = [re.split(r" {2,}", line) for line in result.out.splitlines()]
    assert [row[0] for row in shown[1:]] == ["/srv/größe-" + "語" * 4, "/srv/a?b?[31m", "/srv/" + "e\u0301" * 15]
    assert all(row[1:3] == ["10 %", "70 %"] for row in shown[1:])


class Terminal:
    """forebay top, or another verb, on a terminal, with what it has shown."""

    def __init__(self, columns, *arguments, verb="top", **environment):
        self.master, self.slave = pty.openpty()
        self.set_size(24, columns)
        self.before, self.shown = termios.tcgetattr(self.slave), ""
        self.top = subprocess.Popen([BUILD / "forebay", verb, *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                    env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})

    def set_size(self, rows, columns):
        ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        """As a user does while it runs."""
        self.set_size(rows, columns)
        self.top.send_signal(signal.SIGWINCH)

    def until(self, *wanted):
        """Reads until all of this was shown; without anything, until it ends."""
        deadline = time.monotonic() + 20
        while not all(word in self.shown for word in wanted) if wanted else self.top.poll() is None:
            assert time.monotonic() < deadline, self.shown
            if select.select([self.master], [], [], 0.2)[0]:
                self.shown += os.read(self.master, 65536).decode()
        while select.select([self.master], [], [], 0)[0]:
            self.shown += os.read(self.master, 65536).decode()

    def press(self, keys):
        self.shown = ""
        os.write(self.master, keys)

    def end(self):
        """The exit status."""
        self.until()
        assert termios.tcgetattr(self.slave)[3] == self.before[3], "echo and lines again"
        os.close(self.master)
        os.close(self.slave)
        return self.top.returncode


def test_on_a_terminal(kernel):     # noqa: F811
    """The screen has the mount; q ends it with the terminal as it was."""
    terminal = Terminal(120, "--interval", "0.2", **kernel(MOUNT_LINE, pmem0={}))
    terminal.until("/srv/my db", "SYNC/S", "CLEAN IN")
    terminal.press(b"+-q")
    assert terminal.end() == DONE


def test_on_80_columns(kernel):     # noqa: F811
    """The keys are shown whole; the right arrow shows the rest of the table."""
    terminal = Terminal(80, "--interval", "60", **kernel(MOUNT_LINE, pmem0={}))
    terminal.until("arrows: scroll", "/srv/my db")
    assert "CLEAN" not in terminal.shown
    terminal.press(b"\x1bOC" * 4)
    terminal.until("CLEAN IN")
    terminal.press(b"q")
    assert terminal.end() == DONE


def test_other_sizes(kernel):       # noqa: F811
    """The terminal gets other sizes meanwhile, down to one character, and the mount has a name of 255 bytes."""
    terminal = Terminal(120, "--interval", "0.1", **kernel(MOUNT_LINE.replace("my\\040db", "語" * 85), pmem0={}))
    terminal.until("SYNC/S")
    for rows, columns in (1, 1), (2, 5), (0, 0), (24, 21), (3, 22), (200, 1000), (24, 120):
        terminal.resize(rows, columns)
        terminal.press(b"\x1bOC\x1bOC\x1bOB\x1bOA\x1bOD\x1bOD")
        time.sleep(0.3)
        assert terminal.top.poll() is None, (rows, columns)
    terminal.until("SYNC/S", "/srv/" + "語" * 7)
    terminal.press(b"q")
    assert terminal.end() == DONE


def test_all_fits(kernel):       # noqa: F811
    """Then the down arrow doesn't move the titles off the screen. A smaller one is scrolled to its last line."""
    terminal = Terminal(120, "--interval", "0.1", **kernel(MOUNT_LINE, pmem0={}))
    terminal.until("SYNC/S")
    for rows, shows_title in (24, True), (3, False):
        terminal.resize(rows, 120)
        terminal.press(b"\x1bOB" * 3)
        time.sleep(0.5)
        terminal.until("")
        terminal.press(b"")
        terminal.resize(rows, 119)
        terminal.until("every", "/srv/my db")
        assert ("SYNC/S" in terminal.shown) == shows_title
    terminal.press(b"q")
    assert terminal.end() == DONE


def test_a_failure_on_a_terminal(kernel, tmp_path):     # noqa: F811
    """The message is there when the screen has gone."""
    terminal = Terminal(100, "--interval", "0.1", **kernel(MOUNT_LINE, pmem0={}))
    terminal.until("/srv/my db")
    (tmp_path / "root/proc/self/mountinfo").unlink()
    assert terminal.end() == FAILED
    assert "cannot read what is mounted" in terminal.shown.split("\x1b[?1049l")[-1]


@pytest.mark.parametrize("term, status, said", [("nonesuch", FAILED, "the terminal 'nonesuch' is not known"), ("dumb", DONE, "/srv/my db")])
def test_poor_terminals(kernel, term, status, said):        # noqa: F811
    """One that nothing is known of is an error of ours; on one without a cursor there is text."""
    terminal = Terminal(100, "--count", "1", **{**kernel(MOUNT_LINE, pmem0={}), "TERM": term})
    assert terminal.end() == status
    assert said in terminal.shown and ("\x1b[" not in terminal.shown or term != "dumb")


def test_status_on_a_poor_terminal(kernel):     # noqa: F811
    """Lines with the time in place of an empty screen; no escape sequences."""
    terminal = Terminal(100, "--watch=0.2", verb="status", **{**kernel(MOUNT_LINE, pmem0={}), "TERM": "dumb"})
    terminal.until("/srv/my db")
    assert terminal.shown.startswith("== 20") and "\x1b" not in terminal.shown
    terminal.top.terminate()
    terminal.end()

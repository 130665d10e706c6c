# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: carries out the orders of tests/emu/plans. Checks what the last cut left, lets the writers
write, cuts.

    plans_guest.py FOLDER

Order N is FOLDER/order.N, there when the board says so (BEGUN of the entry ORDER); the plan is there when
DONE says so. Of two sets of devices one is worked on. A cut goes into the other, and then they change
places.
"""

import contextlib
import ctypes
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import emulated                                 # noqa: E402  pylint: disable=wrong-import-position
from powercut.ops import BOARD_GO, PROGRESS     # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
STORAGE = {"ext4": 96 * MIB, "xfs": 304 * MIB}
WRITERS, ORDER = 4, 14
FS, CACHE, BIN = os.environ["LOWER_TYPE"], int(os.environ["CACHE_BYTES"]), Path(os.environ["BIN"])
LOWER, TOP = "/mnt/lower", "/mnt/forebay"
MKFS = {"ext4": ["mkfs.ext4", "-Fq", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
        "xfs": ["mkfs.xfs", "-qfK"]}
NAMES = os.environ["NAMES"]         # size of the name log; "": not the campaign about names
PREFIX = "names-" if NAMES else ""
FSCK = {"ext4": ["e2fsck", "-fn"], "xfs": ["xfs_repair", "-n"]}


def must(*command):
    """Runs a command; its failure is a violation."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{done.stdout}{done.stderr}")
        fail(" ".join(map(str, command)))


def fail(what):
    """Reports the violation and exits."""
    print(f"failed: {what}", flush=True)
    sys.exit(1)


class Board:
    """Memory shared with the host and the writers."""

    def __init__(self):
        device = next(path for path in Path("/sys/bus/pci/devices").iterdir() if (path / "device").read_text() == "0x1110\n")
        fd = os.open(device / "resource2", os.O_RDWR)
        self.words = mmap.mmap(fd, 4096)

    def wait(self, field, value):
        """Waits until the host has set a field of the entry ORDER to at least this value."""
        while PROGRESS.unpack_from(self.words, ORDER * PROGRESS.size)[field] < value:
            time.sleep(0.005)

    def start(self):
        """Clears the progress of all writers, and lets them begin."""
        self.words[:WRITERS * PROGRESS.size] = bytes(WRITERS * PROGRESS.size)
        PROGRESS.pack_into(self.words, BOARD_GO * PROGRESS.size, 1, 0, 0)

    def progress(self):
        """(begun, done, errno) of each writer."""
        return [PROGRESS.unpack_from(self.words, writer * PROGRESS.size) for writer in range(WRITERS)]


class Stack:
    """Forebay over a file system, on the set of devices that is worked on."""

    def __init__(self):
        self.pairs = [[emulated.create(size) for _ in range(2)] for size in (STORAGE[FS], CACHE)]
        self.mount_seconds = 0.4

    def device(self, which):
        """Its path: 0 is storage, 1 PMem."""
        return emulated.path(self.pairs[which][0])

    def make(self):
        """Makes the lower file system and formats the cache."""
        must(*MKFS[FS], self.device(0))
        must("forebay", "format", "--force", *(["--names", NAMES] if NAMES not in ("", "none") else []), self.device(1))

    def attach(self, order):
        """Mounts both file systems; the mount recovers what is in the cache."""
        began = time.monotonic()
        try:
            emulated.mount(self.device(0), LOWER, FS, order["lower_options"])
            emulated.mount(LOWER, TOP, "forebay", f"cache={self.device(1)},allow_volatile_cache")
        except OSError as problem:
            fail(str(problem))
        # One with nothing to recover is fast, and says little of the next.
        self.mount_seconds = max(0.7 * self.mount_seconds, time.monotonic() - began)

    @staticmethod
    def detach():
        """Unmounts. Killed programs may hold the mount for a moment."""
        for folder in (TOP, LOWER):
            deadline = time.monotonic() + 20
            while True:
                try:
                    emulated.umount(folder)
                    break
                except OSError as problem:
                    if time.monotonic() > deadline:
                        fail(str(problem))
                    time.sleep(0.01)

    def cut(self, seed):
        """Power goes, for the other set."""
        emulated.cut([tuple(pair) for pair in self.pairs], seed)

    def swap(self):
        """What was cut is worked on."""
        for pair in self.pairs:
            pair.reverse()


@contextlib.contextmanager
def syncing(wanted):
    """Meanwhile, storage is synced again and again: so a cut leaves a part of what recovery does."""
    libc, ended = ctypes.CDLL(None), threading.Event()

    def sync():
        while not ended.wait(0.002):
            fd = os.open(LOWER, os.O_RDONLY)
            libc.syncfs(fd)
            os.close(fd)

    thread = threading.Thread(target=sync)
    if wanted:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if wanted:
            thread.join()


def recover(stack, order):
    """Attaches what a cut left, perhaps only after others: at moments that are shares of the time that a mount takes."""
    for number, moment in enumerate(order["in_recovery"], 1):
        timer = threading.Timer(moment * stack.mount_seconds, stack.cut, (order["seed"] ^ number,))
        timer.start()
        with syncing(order["syncs_in_recovery"]):
            stack.attach(order)
        timer.join()
        stack.detach()
        stack.swap()
    stack.attach(order)
    tell_replayed()


def tell_replayed():
    """How much the name log had; a campaign whose log is not in use would show nothing."""
    if NAMES in ("", "none"):
        return
    log = next(Path("/sys/fs/forebay").glob("*/names_state")).parent
    state = (log / "names_state").read_text(encoding="ascii").strip()
    if state not in ("on", "off"):
        fail(f"the name log is not in use: {state}")
    print("replayed", (log / "names_replayed").read_text(encoding="ascii").strip(), flush=True)


def dump(top, order, name):
    """For the host."""
    if any(name.startswith(".forebay-replay") for name in os.listdir(top)):
        fail(f"replay left its folder in {top}")
    must(BIN / f"{PREFIX}dump", top, Path(order["check"]) / name, WRITERS, *order["dump_how"])


def drain(stack, order):
    """Everything must be below after unmounting, and both in order."""
    emulated.umount(TOP)
    dump(LOWER, order, "drained")
    emulated.umount(LOWER)
    must(*FSCK[FS], stack.device(0))
    must("forebay", "check", stack.device(1))
    print("drained", flush=True)


def disturb(order):
    """Sets writeback as ordered and starts a shell, which drops caches if the order says so. Returns the
    process group that the shell leads; the writers join it."""
    Path("/proc/sys/vm/dirty_writeback_centisecs").write_text(str(order["writeback_centiseconds"]), encoding="ascii")
    Path("/proc/sys/vm/dirty_expire_centisecs").write_text(str(2 * order["writeback_centiseconds"]), encoding="ascii")
    script = "while sleep 0.3; do echo 3 >/proc/sys/vm/drop_caches; done" if order["drop_caches"] else "sleep 1000"
    return subprocess.Popen(["sh", "-c", script], process_group=0).pid


def write(stack, board, order, folder):
    """Lets the writers write until the power goes, and records how far they were."""
    group = disturb(order)
    if CACHE < 16 * MIB:        # small
        subprocess.run([BIN / "filler", f"{TOP}/filler", str(CACHE * 5 // 4)], check=True, process_group=group)
    board.start()
    writer = subprocess.Popen([BIN / f"{PREFIX}writer", TOP, order["run"], folder / "noise", str(WRITERS)],
                              stdout=subprocess.DEVNULL, process_group=group)
    while not any(done for _, done, _ in board.progress()):
        time.sleep(0.005)
        if writer.poll() is not None:
            fail("the writers ended")
    time.sleep(order["running"])
    before = board.progress()
    stack.cut(order["seed"])
    after = board.progress()
    os.killpg(group, signal.SIGKILL)
    writer.wait()
    os.waitpid(group, 0)
    with open(f"{order['run']}/board", "wb") as file:
        for (_, done, _), (begun, _, error) in zip(before, after):
            file.write(PROGRESS.pack(begun, done, error))
        file.write(bytes(4096 - file.tell()))
    stack.detach()
    stack.swap()
    print("cut", flush=True)


def carry_out(stack, board, order, number, folder):
    """Carries out one order: from what a cut left to the next cut."""
    if order["check"]:
        recover(stack, order)
        dump(TOP, order, "found")
        print("dumped", flush=True)
        if order["fresh"]:
            drain(stack, order)
    if not order["run"]:
        return False
    if order["fresh"]:
        stack.make()
        stack.attach(order)
        for writer in range(WRITERS):
            os.mkdir(f"{TOP}/d{writer}")
            os.chmod(f"{TOP}/d{writer}", 0o777)
        os.sync()
    board.wait(1, number + 1)
    write(stack, board, order, folder)
    return True


def main(folder):
    """Carries out all orders."""
    subprocess.run(f"set -e; modprobe forebay-emu; modprobe {FS}; {os.environ['LOAD']}", shell=True, check=True)
    os.makedirs(LOWER, exist_ok=True)
    os.makedirs(TOP, exist_ok=True)
    stack, board, number = Stack(), Board(), 0
    began = time.monotonic()
    while True:
        board.wait(0, number + 1)
        order = json.loads((folder / f"order.{number}").read_text(encoding="ascii"))
        if not carry_out(stack, board, order, number, folder):
            return
        number += 1
        if number % 20 == 0:
            print(f"{number} cuts, {(time.monotonic() - began) / number:.1f} s each", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

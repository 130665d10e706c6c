# SPDX-License-Identifier: GPL-2.0-only
"""A task with a small file, beside one whose file is four times the cache: what the second leaves the first of the cache.

Each has a processor of its own. The second shares its processor with Forebay's worker.
"""

import contextlib
import subprocess
from pathlib import Path

from ..commands import run
from ..systems import LOWER
from .fio import JOB, check_syncs, check_timed, latencies, lay_out, report_of, timed
from .ranges import BIN, MIB, PAGE

SMALL_MIB, LARGE_MIB = 8, 256
UNTIL_FULL = 5          # seconds
BLOCKS_BELOW = 16000    # a second: some more than the worker writes to the SSD beside the other tasks


def overwrites(path: str, mib: int) -> list[str]:
    """fio's options: with a sync after each write."""
    return [f"--filename={path}", f"--size={mib}m", "--ioengine=psync", "--thread", "--rw=randwrite", "--bs=4k", "--fdatasync=1",
            "--invalidate=0"]


def synced(folder: str) -> list[str]:
    """The large file is overwritten."""
    return ["fio", f"--name={JOB}", *overwrites(f"{folder}/1", LARGE_MIB), *timed(3600)]


def computing(folder: str) -> list[str]:
    """No file is touched: what the processors alone take from the first task."""
    return ["sh", "-c", "while :; do :; done"]


def direct(folder: str) -> list[str]:
    """A file below is written, past Forebay: what the emulated SSD and its interrupts take from the first task."""
    return ["fio", f"--name={JOB}", f"--filename={LOWER}/beside", f"--size={LARGE_MIB}m", "--ioengine=libaio", "--iodepth=16",
            "--thread", "--direct=1", "--rw=randwrite", "--bs=4k", f"--rate_iops={BLOCKS_BELOW}", *timed(3600)]


def flushed(path: str, mib: int, lock: bool, seconds: float) -> list[str]:
    """Stores to a DAX mapping, locked or not, each flushed; for ever if seconds is 0."""
    return [str(BIN / "beside"), path, str(mib * MIB // PAGE), "lock" if lock else "no", str(seconds)]


def stored(folder: str) -> list[str]:
    """The large file is stored to."""
    return flushed(f"{folder}/1", LARGE_MIB, False, 0)


@contextlib.contextmanager
def thrashing(command: list[str]):
    """A task that has filled the cache; none for an empty command."""
    Path("/sys/devices/virtual/workqueue/cpumask").write_text("1")
    if not command:
        yield
        return
    with subprocess.Popen(["taskset", "-c", "0", *command], stdout=subprocess.DEVNULL) as task:
        try:
            run("sleep", str(UNTIL_FULL))
            yield
            if task.poll() is not None:
                raise ValueError("the thrashing task has ended")
        finally:
            task.kill()


def lay_out_both(folder: str) -> None:
    lay_out(f"{folder}/0", SMALL_MIB)
    lay_out(f"{folder}/1", LARGE_MIB)


def synced_beside(thrash=None):
    """Synced overwrites of the small file, alone or beside what that function gives a command for. Syncs/s."""
    def measure(folder: str, seconds: float) -> dict:
        lay_out_both(folder)
        with thrashing(thrash(folder) if thrash else []):
            report = report_of(*overwrites(f"{folder}/0", SMALL_MIB), seconds=seconds, under=("taskset", "-c", "1"))
        check_syncs(report, 1)
        check_timed(report, seconds, write=PAGE)
        return {"value": report["write"]["iops"], **latencies(report["sync"]), **report["cost"]}
    return measure


def stored_beside(thrash=None, lock: bool = True):
    """Flushed stores to a mapping of the small file, locked or not. Stores/s."""
    def measure(folder: str, seconds: float) -> dict:
        lay_out_both(folder)
        with thrashing(thrash(folder) if thrash else []):
            said = run("taskset", "-c", "1", *flushed(f"{folder}/0", SMALL_MIB, lock, seconds))
        stores, faults = said.split()
        return {"value": float(stores), "faults": int(faults)}
    return measure

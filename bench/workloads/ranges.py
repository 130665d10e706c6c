# SPDX-License-Identifier: GPL-2.0-only
"""Workloads on files of which a range belongs in PMem: mapped with MAP_SYNC, locked, or pinned by the command.

On a system other than forebay the same program maps as it can there, and nothing is pinned.
"""

import os
import statistics
from pathlib import Path

from .. import cost
from ..commands import finish, run, start
from .fio import check_timed, lay_out, read_all, report_of

# Where bench/helpers.py puts the programs, in the checkout; the guest is slow, so no import of vm.settings for it.
BIN = Path(__file__).resolve().parents[2] / "build" / "bench" / "bin"
PAGE, MIB = 4096, 1 << 20
WARM_UP = 10            # syncs of mapsync.c that it doesn't time


def synced_mapping(mib: int, dirty: int):
    """Of a mapping so large, so many pages are stored to; then fdatasync() (hybrid-storage-thesis 5.2). MiB/s of dirty pages."""
    def measure(folder: str, seconds: float) -> dict:
        lay_out(f"{folder}/0", mib)
        said, spent = from_first_line(str(BIN / "mapsync"), f"{folder}/0", str(mib * MIB // PAGE), str(dirty), str(seconds))
        times = sync_times(said, on_forebay(f"{folder}/0"))
        middle = statistics.median(times)
        return {"value": dirty * PAGE / MIB / (middle / 1e9), "sync_p50_us": middle / 1000,
                "sync_p99_us": times[len(times) * 99 // 100] / 1000, "syncs": len(times),
                **spent.each(len(times) + WARM_UP)}
    return measure


def from_first_line(*argv: str) -> tuple[str, cost.Spent]:
    """What a program says, and what was spent after its first line, which it says when it is prepared."""
    with start(*argv) as program:
        said = program.stdout.readline().decode()
        with cost.Spent() as spent:
            said += finish(program, 600)
    return said, spent


def sync_times(said: str, dax: bool) -> list[int]:
    """Sorted, in nanoseconds, by what mapsync said: first how it mapped the file. It falls back to a volatile mapping silently."""
    how, *lines = said.split()
    if dax and how != "MAP_SYNC":
        raise ValueError(f"mapsync was to map with MAP_SYNC, and mapped with {how}")
    if not lines:
        raise ValueError("mapsync timed no sync")
    return sorted(int(line) for line in lines)


def synced_batches(batch: int, scattered: bool, mib: int = 256):
    """So many pages of a file that is in memory are written, by calls, and made durable by one sync. Batches/s."""
    def measure(folder: str, seconds: float) -> dict:
        path = f"{folder}/0"
        lay_out(path, mib)
        read_all(path)
        with cost.Spent() as spent:
            lines = run(str(BIN / "batches"), path, str(mib * MIB // PAGE), str(batch), "scattered" if scattered else "piece",
                        str(seconds), timeout=600)
        times = sorted(int(line) for line in lines.split())
        return {"value": len(times) / (sum(times) / 1e9), "p50_us": statistics.median(times) / 1000,
                "p99_us": times[len(times) * 99 // 100] / 1000, "batches": len(times), "pages": batch,
                **spent.each(len(times))}
    return measure


def direct(rw: str, pmem: bool, mib: int = 64):
    """4 KiB direct I/O, one at a time, on a file in PMem, or on a file with only its first page in PMem."""
    def measure(folder: str, seconds: float) -> dict:
        path = f"{folder}/0"
        lay_out(path, mib)
        in_pmem(path, "" if pmem else "0:4k")
        report = report_of(f"--filename={path}", "--ioengine=psync", "--direct=1", f"--rw={rw}", "--bs=4k", "--offset=1m",
                           f"--size={mib - 1}m", seconds=seconds)
        kind = "write" if rw == "randwrite" else "read"
        check_timed(report, seconds, **{kind: 4096})
        return {"value": report[kind]["iops"], **report["cost"]}
    return measure


def in_pmem(path: str, extent: str = "") -> None:
    """Pins a file, if it is on forebay."""
    if on_forebay(path):
        run("forebay", "pin", path, *([extent] if extent else []))
    else:
        os.sync()


def on_forebay(path: str) -> bool:
    return run("stat", "-f", "-c", "%t", path).strip() == "46425259"

# SPDX-License-Identifier: GPL-2.0-only
"""Workloads on a block device itself, or on files of a file system over one: the figures of the DPWC thesis.

Before each of them a cache writes back what it holds (settle), so that all begin with an empty one. What is
written stays below the mark at which dm-writecache or the write log begin to write back, except where it says so.
"""

import os
import re
import stat

from ..commands import CommandFailed, run
from ..cost import written
from ..systems import MAPPED, SSD
from .fio import check_bytes, check_mix, check_syncs, check_timed, fio, lay_out, report_of

MIB = 1 << 20
# fio reads the clock less often, for all systems: with 4 KiB the clock would be a large part of the result.
NO_CLOCK = "--gtod_reduce=1"
REGION_MIB = 1024           # of the device: where the sustained run and the mixes work


def scaling(jobs: int, block: int, mib: int = 320):
    """Direct random writes, each block once (figure 5.2 without a file system)."""
    def measure(device: str, seconds: float) -> dict:
        settle()
        share = mib // jobs
        report = on_device(device, NO_CLOCK, "--rw=randwrite", f"--bs={block}", f"--numjobs={jobs}", f"--size={share}m",
                           f"--offset_increment={share}m")
        check_bytes(report["write"], jobs * share * MIB)
        return {"value": report["write"]["bw_bytes"] / MIB}
    return measure


def scaling_fsync(jobs: int, block: int, mib: int = 128):
    """A file a writer, fsync after each write (figure 5.2)."""
    def measure(folder: str, seconds: float) -> dict:
        for job in range(jobs):
            lay_out(f"{folder}/{job}", mib // jobs)
        settle()
        report = fio(folder, jobs, "--rw=randwrite", f"--bs={block}", f"--size={mib // jobs}m", "--fsync=1", seconds=seconds)
        check_syncs(report, 1)
        check_timed(report, seconds, write=block, jobs=jobs)
        return {"value": report["write"]["bw_bytes"] / MIB, **report["cost"]}
    return measure


def mix(jobs: int, writes: int, region: int = 256):
    """4 KiB reads and writes, direct (figure 5.5)."""
    def measure(device: str, seconds: float) -> dict:
        settle()
        share = region // jobs
        report = on_device(device, NO_CLOCK, "--rw=randrw", f"--rwmixwrite={writes}", "--bs=4k", f"--numjobs={jobs}",
                           f"--size={share}m", f"--offset_increment={share}m", seconds=seconds)
        check_timed(report, seconds, read=4096, write=4096, jobs=jobs)
        check_mix(report, writes)
        return {"value": (report["read"]["bw_bytes"] + report["write"]["bw_bytes"]) / MIB, **report["cost"]}
    return measure


def sustained(jobs: int = 4, length: float = 120, window: float = 0.5):
    """Writes for two minutes into a log that they fill many times over; the rate of each half second (figure 5.4)."""
    def measure(device: str, seconds: float) -> dict:
        settle()
        share = REGION_MIB // jobs
        log = "/tmp/bench-sustained"
        report = on_device(device, "--rw=randwrite", "--bs=4k", f"--numjobs={jobs}", f"--size={share}m",
                           f"--offset_increment={share}m", "--time_based", f"--runtime={length}",
                           f"--write_bw_log={log}", f"--log_avg_msec={round(window * 1000)}")
        check_timed(report, length, write=4096, jobs=jobs)
        series = rates([f"{log}_bw.{job + 1}.log" for job in range(jobs)], window)[:-1]
        check_windows(series, length, window)
        mean = sum(series) / len(series)
        least[device] = min(series) * 1024 / MIB
        return {"value": report["write"]["bw_bytes"] / MIB, "windows": len(series), "window_s": window,
                "series": [round(rate * 1024 / MIB, 2) for rate in series],
                "windows_below_half": sum(rate < mean / 2 for rate in series)}
    return measure


def check_windows(series: list[float], length: float, window: float) -> None:
    """fio's logs cover the run; a window in which nothing was written has a rate of 0."""
    if len(series) < 0.9 * length / window - 1 or not any(series):
        raise ValueError(f"fio logged {len(series)} windows of {window:g} s in {length:g} s")


least: dict[str, float] = {}        # device: MiB/s in the worst window of the sustained run just done


def sustained_least():
    """The worst half second of the sustained run before it."""
    def measure(device: str, seconds: float) -> dict:
        return {"value": max(least.pop(device), 0.001)}      # 0 is a result here
    return measure


def rates(paths: list[str], window: float) -> list[float]:
    """KiB/s in each window, all jobs together, by fio's logs."""
    found: dict[int, float] = {}
    for path in paths:
        with open(path) as file:
            for line in file:
                time, rate = (int(word) for word in line.split(",")[:2])
                found[round(time / window / 1000)] = found.get(round(time / window / 1000), 0) + rate
    return [found.get(i, 0) for i in range(1, max(found) + 1)]


def zipfian(jobs: int = 2, mib: int = 192, region: int = 96):
    """Overwrites, few blocks most of the time: MiB written for each MiB that reached the SSD."""
    def measure(device: str, seconds: float) -> dict:
        settle()
        before = written(SSD)
        report = on_device(device, NO_CLOCK, "--rw=randwrite", "--bs=4k", "--random_distribution=zipf:1.1", f"--numjobs={jobs}",
                           f"--size={region}m", f"--io_size={mib // jobs}m", "--norandommap")
        check_bytes(report["write"], mib * MIB)
        settle()
        return {"value": absorbed(mib * MIB, written(SSD) - before)}
    return measure


def absorbed(made: int, reached: int) -> float:
    """Bytes written for each that reached the SSD: some 6 at most, as many different blocks are written."""
    if reached < made / 100:
        raise ValueError(f"{made} bytes were written, and {reached} reached the SSD: the cache was not written back")
    return made / reached


def on_device(device: str, *options: str, seconds: float = 0) -> dict:
    if not stat.S_ISBLK(os.stat(device).st_mode):
        raise ValueError(f"{device} is no block device: this workload is for the systems called bare-...")
    return report_of(f"--filename={device}", "--direct=1", "--ioengine=psync", "--group_reporting", *options, seconds=seconds)


def settle() -> None:
    """The caches are empty, the SSD has everything."""
    os.sync()
    if os.path.exists(MAPPED):
        run("dmsetup", "message", os.path.basename(MAPPED), "0", "flush")


def fillsync(threads: int, writes: int = 2000, keys: int = 2000):
    """RocksDB: random keys, each made durable (figure 5.7)."""
    def measure(folder: str, seconds: float) -> dict:
        settle()
        # db_bench divides --num, but not --writes, by 1,000 for this benchmark; --writes are a thread's.
        return {"value": db_bench("fillsync", writes, f"--db={folder}/db", f"--threads={threads}", f"--num={keys * 1000}",
                                  f"--writes={writes // threads}", "--sync=1")}
    return measure


def db_bench(benchmark: str, operations: int, *options: str) -> float:
    """Operations a second, by what it says. It must have done as many as asked for."""
    return parse_db_bench(run("db_bench", f"--benchmarks={benchmark}", *options), benchmark, operations)


def parse_db_bench(output: str, benchmark: str, operations: int) -> float:
    """From a line such as `fillsync : 12.3 micros/op 81300 ops/sec 0.025 seconds 2000 operations; 0.9 MB/s`."""
    line = next((line for line in output.splitlines() if line.split()[:1] == [benchmark]), "")
    found = re.search(r" (\d+) ops/sec .* (\d+) operations;", line)
    if not found or int(found[2]) != operations:
        raise CommandFailed(f"db_bench was to do {operations} operations of {benchmark}: {line or output[-2000:]}")
    if "(0 of " in line:        # keys found, which only reads have: an empty database is read fast
        raise CommandFailed(f"db_bench found no key: {line}")
    return float(found[1])

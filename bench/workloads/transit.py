# SPDX-License-Identifier: GPL-2.0-only
"""The workloads of the Caiti paper, on files of an ext4 over a transit cache, over what it is compared with, or over the
BTT itself. Before each, a cache writes down what it holds.

The files are larger than the caches, so that caches are full before a run counts, as they are in the paper.
"""

import os

from ..commands import run
from ..systems import MAPPED
from .block import db_bench, settle
from .fio import check_bytes, check_syncs, check_timed, fio, lay_out

MIB = 1 << 20
FILE_MIB = 256
# Of what the target measures, what a write consists of (docs/transit.md).
PHASES = ("metadata", "cache_write", "evict_and_write", "bypass", "enqueue", "flush")


def direct(jobs: int, depth: int, mib: int = FILE_MIB):
    """4 KiB random direct writes, so many in flight (figures 5a, 5d, 5e)."""
    def measure(folder: str, seconds: float) -> dict:
        for job in range(jobs):
            lay_out(f"{folder}/{job}", mib // jobs)
        settle()
        report = random_writes(folder, jobs, depth, mib // jobs, seconds=seconds)
        check_timed(report, seconds, write=4096, jobs=jobs, depth=depth)
        return figures(report)
    return measure


def full_cache(depth: int):
    """4 KiB random direct writes, each block once, while the cache is full (table 1).

    A file of the cache's size fills the cache first. The writes go to another file of that size, or last
    for so many seconds. The result says how full the cache was: a file system's own flushes empty it, too.
    """
    def measure(folder: str, seconds: float) -> dict:
        size = slots()[1] * 4096 // MIB
        filled, written = f"{folder}/filled", f"{folder}/written"
        for name in (filled, written):
            os.mkdir(name)
            lay_out(f"{name}/0", size)
            settle()
        check_bytes(fio(filled, 1, "--rw=write", "--bs=64k", f"--size={size}m", "--direct=1")["write"], size * MIB)
        used, of = slots()
        report = random_writes(written, 1, depth, size, f"--runtime={seconds:g}")
        if report["write"]["io_bytes"] != size * MIB:       # then the time was over
            check_timed(report, seconds, write=4096, depth=depth)
        return figures(report) | {"percent_used_before": round(100 * used / of)}
    return measure


def random_writes(folder: str, jobs: int, depth: int, mib: int, *options: str, seconds: float = 0) -> dict:
    """What fio says of 4 KiB direct ones, so many in flight of each job, in a file of that size."""
    return fio(folder, jobs, "--rw=randwrite", "--bs=4k", f"--size={mib}m", "--direct=1", "--ioengine=libaio", f"--iodepth={depth}",
               *options, seconds=seconds)


def figures(report: dict) -> dict:
    return {"value": report["write"]["iops"], **response(report["write"]), **report["cost"]}


def fsync_every(kib: int, mib: int = FILE_MIB):
    """4 KiB random direct writes, one after the other, fsync after so many KiB (figure 2b)."""
    def measure(folder: str, seconds: float) -> dict:
        lay_out(f"{folder}/0", mib)
        settle()
        # At least two fsyncs, however long they take.
        written = max(2 * kib, 16 << 10)
        report = fio(folder, 1, "--rw=randwrite", "--bs=4k", f"--size={mib}m", "--direct=1", f"--fsync={kib // 4}",
                     "--norandommap", f"--io_size={written}k")
        check_bytes(report["write"], written << 10)
        check_syncs(report, kib // 4)
        sync = report["sync"]["lat_ns"]
        return {"value": 1e9 / sync["mean"], "fsync_mean_us": round(sync["mean"] / 1000, 1),
                "mib_s": report["write"]["bw_bytes"] / MIB}
    return measure


def breakdown(mib: int = FILE_MIB, writes: int = 16384):
    """pwrite() of 4 KiB, direct, one after the other: which part of the time is which phase's (figures 6a, 6c, 6d)."""
    def measure(folder: str, seconds: float) -> dict:
        lay_out(f"{folder}/0", mib)
        settle()
        before = phases() if os.path.exists(MAPPED) else {}
        if before:
            run("dmsetup", "message", os.path.basename(MAPPED), "0", "latency", "on")
        report = fio(folder, 1, "--rw=randwrite", "--bs=4k", f"--size={mib}m", "--direct=1", "--norandommap",
                     f"--io_size={writes * 4}k")
        check_bytes(report["write"], writes * 4096)
        total = report["write"]["lat_ns"]["mean"] * report["write"]["total_ios"]
        found = {"value": report["write"]["iops"], **response(report["write"])}
        if before:
            run("dmsetup", "message", os.path.basename(MAPPED), "0", "latency", "off")
            after = phases()
            spent = {phase: after[phase][0] - before[phase][0] for phase in PHASES}
            # The device's time for a block, in the background.
            evicted = [now - then for now, then in zip(after["eviction"], before["eviction"])]
            found["eviction_us"] = round(evicted[0] / evicted[1] / 1000, 2) if evicted[1] else 0
            found |= {f"percent_{phase}": round(100 * ns / total, 2) for phase, ns in spent.items()}
            # The rest: system call, file system, device-mapper, block layer, and fio itself.
            found["percent_other"] = round(100 - 100 * sum(spent.values()) / total, 2)
        return found
    return measure


def slots() -> tuple[int, int]:
    """In use and in all, by the status; blocks of 4 KiB."""
    used, of = next(word for word in run("dmsetup", "status", os.path.basename(MAPPED)).split() if "/" in word).split("/")
    return int(used), int(of)


def phases() -> dict[str, tuple[int, int]]:
    """Nanoseconds of each phase so far, and how often it was measured."""
    return parse_phases(run("dmsetup", "message", os.path.basename(MAPPED), "0", "latency", "show"))


def parse_phases(shown: str) -> dict[str, tuple[int, int]]:
    return {name: (int(numbers[0]), sum(int(bucket.partition(":")[2]) for bucket in numbers[1:])) if numbers else (0, 0)
            for name, *numbers in map(str.split, shown.splitlines())}


def response(write: dict) -> dict:
    """Of a write, in microseconds; from the call to its end. The percentiles are those that fio keeps."""
    percentiles = write["clat_ns"]["percentile"]
    return {"percentiles_us": {f"{float(share):g}": round(time / 1000, 1) for share, time in percentiles.items()},
            "mean_us": round(write["lat_ns"]["mean"] / 1000, 1), "p99_us": round(percentiles["99.000000"] / 1000, 1),
            "p9999_us": round(percentiles["99.990000"] / 1000, 1)}


def rocksdb(benchmark: str, *options: str, fill: bool = True, thousands: int = 20, value: int = 1024):
    """db_bench without compression; first filled in random order, if it does not fill itself (figure 8)."""
    def measure(folder: str, seconds: float) -> dict:
        settle()
        common = (f"--db={folder}/db", f"--num={thousands * 1000}", f"--value_size={value}", "--compression_type=none",
                  "--write_buffer_size=4194304", "--cache_size=4194304", "--sync=0")
        if fill:
            db_bench("fillrandom", thousands * 1000, *common)
            settle()
        return {"value": db_bench(benchmark, thousands * 1000, *common, *(["--use_existing_db=1"] if fill else []), *options)}
    return measure

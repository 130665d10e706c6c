# SPDX-License-Identifier: GPL-2.0-only
"""Workloads that fio runs: synchronous system calls of one file a job (ioengine=psync).

Files that are overwritten or read exist in full before fio starts, and are synced. So the time that counts includes no
allocation and no unwritten extents, which would slow down ext4 most.
"""

import json
import os
import time

from .. import cost
from ..commands import finish, start
from ..systems import drop_caches

CHUNK = 1 << 20
JOB = "forebay-bench-job"       # fio takes the name for a file's if there is one of that name where it runs
RAMP = 0.5              # seconds before fio counts
START = 1.0             # seconds until all its jobs run, in the emulated machine


def synced_writes(jobs: int = 1, block: int = 4096, mib: int = 64):
    def measure(folder: str, seconds: float) -> dict:
        for job in range(jobs):
            lay_out(f"{folder}/{job}", mib)
        report = fio(folder, jobs, "--rw=randwrite", f"--bs={block}", f"--size={mib}m", "--fdatasync=1",
                     seconds=seconds)
        check_syncs(report, 1)
        check_timed(report, seconds, write=block, jobs=jobs)
        return {"value": report["write"]["iops"], **latencies(report.get("sync", {})), **report["cost"]}
    return measure


def synced_appends():
    def measure(folder: str, seconds: float) -> dict:
        # Without fallocate=none fio would allocate the whole file first, and nothing would grow. It is large enough not
        # to wrap around in a few seconds.
        report = fio(folder, 1, "--rw=write", "--bs=4k", "--size=1g", "--fallocate=none", "--fdatasync=1",
                     seconds=seconds)
        check_syncs(report, 1)
        check_timed(report, seconds, write=4096)
        return {"value": report["write"]["iops"], **latencies(report.get("sync", {})), **report["cost"]}
    return measure


def sequential_write(mib: int = 256):
    """A fixed amount, below the limit at which the kernel makes writers wait for storage."""
    def measure(folder: str, seconds: float) -> dict:
        report = fio(folder, 1, "--rw=write", "--bs=128k", f"--size={mib}m", "--fallocate=none")
        check_bytes(report["write"], mib << 20)
        return {"value": report["write"]["bw_bytes"] / (1 << 20)}
    return measure


def sequential_read(cached: bool, mib: int = 256):
    def measure(folder: str, seconds: float) -> dict:
        lay_out(f"{folder}/0", mib)
        drop_caches()
        if cached:
            read_all(f"{folder}/0")
        report = fio(folder, 1, "--rw=read", "--bs=128k", f"--size={mib}m",
                     seconds=seconds if cached else 0)
        if cached:
            check_timed(report, seconds, read=128 << 10)
        else:
            check_bytes(report["read"], mib << 20)
        return {"value": report["read"]["bw_bytes"] / (1 << 20), **report["cost"]}
    return measure


def random_read(mib: int = 128):
    def measure(folder: str, seconds: float) -> dict:
        lay_out(f"{folder}/0", mib)
        read_all(f"{folder}/0")
        report = fio(folder, 1, "--rw=randread", "--bs=4k", f"--size={mib}m", "--gtod_reduce=1",
                     seconds=seconds)
        check_timed(report, seconds, read=4096)
        return {"value": report["read"]["iops"], **report["cost"]}
    return measure


def fio(folder: str, jobs: int, *options: str, seconds: float = 0) -> dict:
    """As report_of(), on the files 0, 1, ... of the folder."""
    # By default fio drops the file's pages before each pass: forebay then writes them back and evicts them
    # from PMem, as it should. Databases don't do that between two writes.
    report = report_of(f"--directory={folder}", "--filename_format=$jobnum", f"--numjobs={jobs}", "--ioengine=psync", "--invalidate=0",
                       "--group_reporting", *options, seconds=seconds)
    # fio may choose other files than the given ones, and creates what doesn't exist.
    if (found := sorted(os.listdir(folder))) != [str(job) for job in range(jobs)]:
        raise ValueError(f"fio worked on other files: {found}")
    return report


def report_of(*options: str, seconds: float = 0, ramp: float = RAMP, begin: float = START, under: tuple[str, ...] = ()) -> dict:
    """What fio reports of its jobs together; with what an operation costs ("cost"), if they run for so many seconds after a ramp.

    fio starts and stops in no time that is known. So the costs are counted while it is sure to work: from `begin` on, in
    seconds after its start, until it would end if it started in no time.
    """
    with start(*under, "fio", f"--name={JOB}", "--output-format=json", *options, *(timed(seconds, ramp) if seconds else [])) as program:
        spent = spent_between(begin, ramp + seconds) if seconds else None
        report = parse(finish(program, 120 + seconds))
    rate = sum(report.get(op, {}).get("iops", 0) for op in ("read", "write"))
    return report | {"cost": spent.each(rate * spent.seconds) if spent else {}}


def spent_between(begin: float, end: float) -> cost.Spent:
    """Seconds from now."""
    time.sleep(begin)
    with cost.Spent() as spent:
        time.sleep(max(0.1, end - begin))
    return spent


def parse(output: str) -> dict:
    """fio may say things before its JSON begins."""
    jobs = json.loads(output[output.index("{\n"):])["jobs"]
    if len(jobs) != 1 or jobs[0]["error"]:
        raise ValueError(f"fio: {len(jobs)} groups of jobs, error {jobs[0]['error']}")
    if not any(jobs[0].get(op, {}).get("iops") for op in ("read", "write")):
        raise ValueError("fio read and wrote nothing")
    return jobs[0]


def check_bytes(done: dict, expected: int) -> None:
    """For a run of a given size."""
    if done["io_bytes"] != expected:
        raise ValueError(f"fio was to do {expected} bytes, and did {done['io_bytes']}")


def check_timed(report: dict, seconds: float, read: int = 0, write: int = 0, jobs: int = 1, depth: int = 1) -> None:
    """For a run of a given time: each job lasted that long, and did blocks of that size. A size of 0 means none of that kind.

    fio counts a block when it is issued and its bytes when it is done: what is in flight at the end of the ramp may differ.
    """
    if report["job_runtime"] < 0.9 * 1000 * seconds * jobs:
        raise ValueError(f"fio was to run {jobs} jobs for {seconds:g} s each, and ran for {report['job_runtime']} ms in all")
    for name, block in (("read", read), ("write", write)):
        done = report.get(name, {})
        blocks, size = done.get("total_ios", 0), done.get("io_bytes", 0)
        if bool(blocks) != bool(block) or abs(size - blocks * block) > max(jobs * depth * block, size / 100):
            raise ValueError(f"fio was to {name} blocks of {block} bytes: it did {blocks} of {size} bytes in all")


def check_mix(report: dict, percent: int) -> None:
    """So many of the blocks were writes."""
    reads, writes = report["read"]["total_ios"], report["write"]["total_ios"]
    found = 100 * writes / max(1, reads + writes)
    if abs(found - percent) > 5:
        raise ValueError(f"fio was to do {percent} % writes, and did {found:.0f} %: {writes} of {reads + writes}")


def check_syncs(report: dict, writes: int) -> None:
    """A sync must have followed so many writes each time. The ramp's end, and each job's, may cut one in two."""
    syncs, done = report["sync"]["lat_ns"]["N"], report["write"]["total_ios"]      # sync.total_ios is 0 in fio 3.33
    if not syncs or syncs * writes < 0.9 * done - 16 * writes:
        raise ValueError(f"fio synced {syncs} times after {done} writes, not after each {writes}")


def latencies(sync: dict) -> dict:
    """Of the sync calls, in microseconds."""
    lat = sync.get("lat_ns", {})
    percentiles = lat.get("percentile", {})
    found = {"sync_mean_us": lat.get("mean"), "sync_p50_us": percentiles.get("50.000000"),
             "sync_p99_us": percentiles.get("99.000000")}
    return {name: round(value / 1000, 2) for name, value in found.items() if value}


def timed(seconds: float, ramp: float = RAMP) -> list[str]:
    return ["--time_based", f"--runtime={round(seconds * 1000)}ms", f"--ramp_time={round(ramp * 1000)}ms"]


def lay_out(path: str, mib: int) -> None:
    """A file full of data, synced."""
    data = os.urandom(CHUNK)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        for _ in range(mib):
            os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def read_all(path: str) -> None:
    buffer = bytearray(CHUNK)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass

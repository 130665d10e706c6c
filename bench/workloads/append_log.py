# SPDX-License-Identifier: GPL-2.0-only
"""Redis by how its append-only file is written: by system calls, or through a mapping (forebay log-preload). One client, with
pipelines of so many commands.

The rate and the processor time are counted while redis-benchmark sends without end; the response times are those of a second
run of it, of as many commands as the rate lets expect. A response time is that of a whole pipeline.
"""

import os
import re
import subprocess
from pathlib import Path

from . import redis

PRELOAD = ("forebay", "log-preload", "--")
PLACE, PAGE = b"rfby-log", 4096         # of a log in use, its last page begins so (docs/append-log.md)
SHARE = re.compile(r"([\d.]+)% <= ([\d.]+) milliseconds \(cumulative count")
LEAST = 200                             # pipelines whose time is taken
FIGURES = {"p50_us": 50, "p99_us": 99, "p999_us": 99.9, "max_us": 100}


def commands(fsync: str, pipeline: int = 1, mapped: bool = False, command: str = "set"):
    def measure(folder: str, seconds: float) -> dict:
        options = ("-c", "1", "-P", str(pipeline))
        with redis.Server(folder, fsync, PRELOAD if mapped else ()) as server:
            with redis.load(command, *options) as sender:
                before = processor_seconds(server.process.pid), redis.calls(server.connection, command)
                answered = redis.rate(server.connection, command, sender, seconds)
                after = processor_seconds(server.process.pid), redis.calls(server.connection, command)
            check_mapped(folder, mapped)
            asked = int(max(LEAST * pipeline, answered["value"] * seconds))
            percentiles = response_times(command, "-n", str(asked), *options)
        return {**answered, "cpu_us": 1e6 * (after[0] - before[0]) / (after[1] - before[1]), "timed": asked // pipeline,
                "percentiles_us": percentiles, **figures(percentiles)}
    return measure


def processor_seconds(pid: int) -> float:
    """Of all threads of a process, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_mapped(folder: str, mapped: bool) -> None:
    """The log in use is written as asked."""
    (log,) = Path(folder).glob("appendonlydir/*.incr.aof")
    with open(log, "rb") as file:
        file.seek(max(0, os.stat(log).st_size - PAGE))
        found = file.read(len(PLACE)) == PLACE
    if found != mapped:
        raise RuntimeError(f"{log}: appended to {'through a mapping' if found else 'by system calls'}, which was not asked for")


def response_times(command: str, *options: str) -> dict[str, float]:
    """In µs, by which percentage of the pipelines took at most so long."""
    said = subprocess.run([*redis.BENCHMARK, "-t", command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return parse_times(said)


def parse_times(said: str) -> dict[str, float]:
    _, _, part = said.partition("Latency by percentile distribution:")
    part, cumulative, _ = part.partition("Cumulative distribution")
    found = {share: round(1000 * float(time), 1) for share, time in SHARE.findall(part)}
    if not cumulative or "100.000" not in found:
        raise RuntimeError(f"redis-benchmark reports no response times: {said[-500:]}")
    return {f"{float(share):g}": time for share, time in found.items()}


def figures(percentiles: dict[str, float]) -> dict[str, float]:
    """Each percentile is at most that of the first share which is not less."""
    known = sorted((float(share), time) for share, time in percentiles.items())
    return {name: next(time for share, time in known if share >= wanted) for name, wanted in FIGURES.items()}

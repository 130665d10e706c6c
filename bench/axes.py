# SPDX-License-Identifier: GPL-2.0-only
"""Which workloads of an experiment make a line: they differ in one number, which becomes the x axis."""

import re
from dataclasses import dataclass, field

LEAST = 3           # points of a line; fewer are bars
# A workload's name, with its number as x and, if there is one, another as f; what x is; what the panel is called.
# The first word of a name decides; a name may be a point of several panels.
AXES = (
    (r"depth-(?P<x>\d+)", "writes in flight", "4 KiB direct random writes"),
    (r"jobs-(?P<x>\d+)", "jobs, 32 in flight each", "4 KiB direct random writes"),
    (r"fsync-every-(?P<x>\d+)k", "KiB written before each fsync", "fsyncs, by what was written before"),
    (r"bare-(?P<f>\d+[km])-j(?P<x>\d+)", "writers", "direct writes of {f}"),
    (r"bare-mix-w(?P<f>\d+)-j(?P<x>\d+)", "workers", "4 KiB, {f} % writes"),
    (r"fsync-(?P<f>\d+[km])-j(?P<x>\d+)", "writers", "writes of {f}, fsync after each"),
    (r"mapped-(?P<x>\d+)m", "MiB mapped", "2 MiB stored to, fdatasync"),
    (r"aof-(?P<f>[a-z-]+)-p(?P<x>\d+)", "commands in a pipeline", "Redis SET, appendfsync {f}"),
    (r"dirty-(?P<x>\d+)k", "KiB stored to", "2 MiB mapped, fdatasync"),
    (r"scattered-(?P<x>\d+)", "pages", "scattered pages, fdatasync"),
    (r"piece-(?P<x>\d+)k", "KiB", "one piece, fdatasync"),
    (r"memory-(?P<f>(?:seq|rand)(?:read|write))-(?P<x>\d+)", "bytes a chunk", "memory, {f}"),
    (r"kv-(?P<f>hash|tree)-(?P<x>\d+)", "bytes a value", "persistent key-value store, {f}"),
    (r"flush-(?P<f>[a-z]+)-(?P<x>\d+)", "bytes flushed and fenced", "flushes, {f}"),
    (r"blocks-(?P<x>\d+)k-t(?P<f>\d+)", "KiB a block", "msync() a block, {f} threads"),
    (r"blocks-(?P<f>\d+)k-t(?P<x>\d+)", "threads", "msync() a block, {f} KiB"),
    (r"fenced-(?P<x>\d+)k-t(?P<f>\d+)", "KiB a block", "flushed by the program where that is DAX, {f} threads"),
    (r"fenced-(?P<f>\d+)k-t(?P<x>\d+)", "threads", "flushed by the program where that is DAX, {f} KiB"),
)
SIZED = re.compile(r"(?P<system>.+)-(?P<x>\d+)m")       # systems that differ in the size of their cache


@dataclass
class Panel:
    """Lines: for each system, the rows by x."""
    title: str
    x: str
    figure: str = "value"
    lines: dict[str, dict[int, dict]] = field(default_factory=dict)

    def add(self, system: str, x: int, row: dict) -> None:
        self.lines.setdefault(system, {})[x] = row

    def points(self) -> list[int]:
        return sorted({x for line in self.lines.values() for x in line})


def panels(rows: list[dict]) -> tuple[list[Panel], list[str]]:
    """The panels with lines, and the workloads that are in none of them."""
    found: dict[str, Panel] = {}
    for row in rows:
        for pattern, x, title in AXES:
            if match := re.fullmatch(pattern, row["workload"]):
                title = title.format(**match.groupdict())
                found.setdefault(f"{title} {x}", Panel(title, x)).add(row["system"], int(match["x"]), row)
        if row["workload"] == "full-cache" and (match := SIZED.fullmatch(row["system"])):
            panel = found.setdefault("full-cache", Panel("response time, cache full of other blocks", "MiB of cache", "mean_us"))
            panel.add(match["system"], int(match["x"]), row)
    kept = [panel for panel in found.values() if len(panel.points()) >= LEAST]
    shown = {row["workload"] for panel in kept for line in panel.lines.values() for row in line.values()}
    return kept, [name for name in dict.fromkeys(row["workload"] for row in rows) if name not in shown]

# SPDX-License-Identifier: GPL-2.0-only
"""What a page fault and a call of mmap() cost (PMDK thesis 4.4, figure 10), by an own driver; and which functions of the kernel
one of them runs, by trace-cmd.
"""

import os
import re
from collections.abc import Iterable
from contextlib import contextmanager

from ..commands import run
from . import guest_only
from .fio import lay_out, read_all
from .memory import dax_mounted
from .names import BIN, result
from .ranges import on_forebay

FILE_MIB = 64
PAGE = 4096
# The function whose callees are traced, by what is done.
ROOTS = {"read": "handle_mm_fault", "write": "handle_mm_fault", "mmap": "vm_mmap_pgoff"}
CALL = re.compile(r"\s*([\w.]+)(?: \[\w+\])?\(\)(?: \[\w+\])?(?:;| \{)")


def costs(what: str, how: str, state: str, mib: int = FILE_MIB):
    """Of each fault, or of each mmap(). Calls/s and percentiles."""
    def measure(folder: str, seconds: float) -> dict:
        path = prepared(folder, mib)
        said = run(str(BIN / "faults"), path, str(mib * (1 << 20) // PAGE), what, how, state, str(seconds), timeout=600)
        times, touched = parse(said, what, wants_sync(path, how))
        found = result(times)
        return found | {"mean_us": 1e6 / found["value"], "touched": touched}
    return measure


def prepared(folder: str, mib: int) -> str:
    path = f"{folder}/0"
    lay_out(path, mib)
    read_all(path)
    return path


def wants_sync(path: str, how: str) -> str:
    """How the driver has to map this file."""
    return "MAP_SYNC" if how == "sync" and (on_forebay(path) or dax_mounted(path)) else "MAP_SHARED"


def parse(said: str, what: str, must: str) -> tuple[list[int], int]:
    """The nanoseconds of each, and how many pages were touched: those that the kernel had mapped already were no fault."""
    how, *lines, word, touched = said.split()
    times = [int(line) for line in lines]
    if how != must or word != "touched":
        raise ValueError(f"faults was to map with {must}, and said {how} {word}")
    if not times or (what == "mmap") != (touched == "0") or what != "mmap" and len(times) > int(touched):
        raise ValueError(f"faults was to {what} pages: it timed {len(times)}, and touched {touched}")
    return times, int(touched)


def trace(what: str, how: str, mib: int = FILE_MIB):
    """One fault, or one mmap(). The number of functions of the kernel that it ran; their trace is kept."""
    def measure(folder: str, _: float) -> dict:
        guest_only.install("trace")
        path = prepared(folder, mib)
        with one_processor():
            run("trace-cmd", "start", "-p", "function_graph", "-g", ROOTS[what], "-O", "nofuncgraph-irqs", timeout=600)
            try:
                run(str(BIN / "faults"), path, str(mib * (1 << 20) // PAGE), what, how, "cached", "trace", timeout=600)
                said = run("trace-cmd", "show", timeout=600)
            finally:
                run("trace-cmd", "reset", timeout=600)
        lines = between(said, ROOTS[what])
        return {"value": len(calls(lines)), "trace": lines}
    return measure


@contextmanager
def one_processor():
    """In QEMU's translator, as long as the kernel patches its own functions: another processor may run an old translation of one
    of them, with the breakpoint that is there meanwhile, and the kernel ends with "Oops: int3".
    """
    with open("/proc/cpuinfo") as file:
        others = range(1, os.cpu_count()) if "QEMU TCG" in file.read() else ()
    set_online(others, "0")
    try:
        yield
    finally:
        set_online(others, "1")


def set_online(processors: Iterable[int], state: str) -> None:
    for number in processors:
        with open(f"/sys/devices/system/cpu/cpu{number}/online", "w") as file:
            file.write(state)


def between(said: str, root: str) -> list[str]:
    """The graph between the driver's two marks: one call of the root, with what it calls."""
    lines = said.splitlines()
    begins, ends = ([number for number, line in enumerate(lines) if f"/* {mark} */" in line] for mark in ("begins", "ends"))
    if len(begins) != 1 or len(ends) != 1:
        raise ValueError(f"a trace with {len(begins)} beginnings and {len(ends)} ends")
    graph = [line.partition("|  ")[2].rstrip() for line in lines[begins[0] + 1:ends[0]] if "|  " in line]
    if calls(graph).count(root) != 1:
        raise ValueError(f"a trace with {calls(graph).count(root)} calls of {root}")
    return graph


def calls(graph: list[str]) -> list[str]:
    """The functions, in the order in which they were called."""
    return [found[1] for line in graph if (found := CALL.fullmatch(line))]

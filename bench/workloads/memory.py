# SPDX-License-Identifier: GPL-2.0-only
"""Bandwidth and latency of memory (PMDK thesis 3.3, figure 7): an own driver on a mapping of a file, and mbw.

On tmpfs the mapping is DRAM, on a file system with DAX the PMem, on forebay a pinned file's pages. mbw knows nothing of files:
its rows are of DRAM on each system, should agree, and show how far a row can be trusted.
"""

import math
import os
import re

from ..commands import run
from . import guest_only
from .ranges import BIN, in_pmem, on_forebay

MIB = 1 << 20
REGION_MIB = 64
MBW_MIB = 64
MBW = re.compile(r"^AVG\s+Method: (\w+)\s+Elapsed: ([\d.]+)\s+MiB: ([\d.]+)\s+Copy: ([\d.]+) MiB/s", re.M)
KINDS = {"memcpy": ("MEMCPY", 0), "mcblock": ("MCBLOCK", 2)}        # mbw's words for them, and its numbers


def bandwidth(rw: str, order: str, chunk: int):
    """memcpy() of chunks out of the mapping or into it. MiB/s."""
    def measure(folder: str, seconds: float) -> dict:
        path = mapped_file(folder, REGION_MIB)
        said = run(str(BIN / "memory"), path, str(REGION_MIB), rw, order, str(chunk), str(seconds), timeout=600)
        chunks, took = counted(said, seconds, must_be_pmem(path))
        if rw == "write":
            check_written(path, chunks, chunk, order == "rand")
        return {"value": chunks * chunk / MIB / took, "chunks": chunks}
    return measure


def latency():
    """Loads of which each says where the next one is. Loads/s, and nanoseconds."""
    def measure(folder: str, seconds: float) -> dict:
        path = mapped_file(folder, REGION_MIB)
        loads, took = counted(run(str(BIN / "memory"), path, str(REGION_MIB), "chase", str(seconds), timeout=600), seconds,
                              must_be_pmem(path))
        return {"value": loads / took, "load_us": took / loads * 1e6}
    return measure


def mapped_file(folder: str, mib: int) -> str:
    """A file of zeros that exists in full; pinned, where that means something."""
    path = f"{folder}/0"
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(bytes(MIB))
        os.fsync(file.fileno())
    in_pmem(path)
    return path


def must_be_pmem(path: str) -> bool:
    """Whether a mapping of this file has to be persistent memory: on forebay, and where DAX is mounted."""
    return on_forebay(path) or dax_mounted(path)


def dax_mounted(path: str) -> bool:
    folder = os.path.realpath(path)
    while not os.path.ismount(folder):
        folder = os.path.dirname(folder)
    with open("/proc/mounts") as mounts:
        return any(place == folder and "dax=always" in options.split(",") for _, place, _, options, *_ in map(str.split, mounts))


def counted(said: str, seconds: float, pmem: bool) -> tuple[int, float]:
    """What the driver did, and in how many seconds."""
    how, count, took = said.split()
    if pmem and how != "MAP_SYNC":
        raise ValueError(f"memory was to map persistent memory, and mapped with {how}")
    if not int(count) or int(took) < 0.9e9 * seconds:
        raise ValueError(f"memory was to work for {seconds:g} s: it did {count} in {took} ns")
    return int(count), int(took) / 1e9


def covered(path: str) -> int:
    """How many bytes are 0xff."""
    found = 0
    with open(path, "rb") as file:
        while part := file.read(MIB):
            found += part.count(b"\xff")
    return found


def check_written(path: str, chunks: int, chunk: int, random: bool) -> None:
    """The file has bytes of so many chunks, which were drawn at random or stand one behind the other."""
    places = os.path.getsize(path) // chunk
    check_share(covered(path), chunk, places * -math.expm1(-chunks / places) if random else min(chunks, places), random)


def check_share(found: int, size: int, places: float, random: bool) -> None:
    """So many places of that size were to be found in the file; by chance a tenth more or fewer, and those of a few."""
    if abs(found - places * size) > (0.1 * places * size + 16 * size if random else 0):
        raise ValueError(f"{places:.0f} places of {size} bytes were to be written, and {found} bytes were")


def mbw(kind: str, block: int = 0):
    """mbw copies an array of its own, whole or by blocks. MiB/s."""
    def measure(_: str, seconds: float) -> dict:
        guest_only.install("mbw")
        word, number = KINDS[kind]
        said = run("mbw", "-q", f"-t{number}", "-n", str(max(3, round(10 * seconds))), *(["-b", str(block)] if block else []), str(MBW_MIB), timeout=600)
        return {"value": mbw_rate(said, word)}
    return measure


def mbw_rate(said: str, kind: str) -> float:
    """The average that mbw computed of the method asked for, and of no other."""
    found = MBW.findall(said)
    if [method for method, *_ in found] != [kind]:
        raise ValueError(f"mbw was to measure {kind}, and said {said[-200:]!r}")
    _, elapsed, mib, rate = found[0]
    if float(mib) != MBW_MIB or not math.isclose(float(mib) / float(elapsed), float(rate), rel_tol=0.01):
        raise ValueError(f"mbw copied {mib} MiB in {elapsed} s, and calls that {rate} MiB/s")
    return float(rate)

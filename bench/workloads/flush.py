# SPDX-License-Identifier: GPL-2.0-only
"""What a flush costs, by size and by instruction (PMDK thesis 5.3, figure 15). An own driver stands in for pmembench.

Where a file is no persistent memory, libpmem's pmem_msync() is what makes it durable; the instructions alone make nothing
durable there. A flush leaves no trace: that the lines were stored to is checked, that they were flushed is not.
"""

import math

from ..commands import run
from .memory import check_share, covered, mapped_file, must_be_pmem
from .ranges import BIN

LINE = 64
REGION_MIB = 16
WAYS = ("persist", "clwb", "clflushopt", "clflush", "nt")


def cost(way: str, size: int):
    """Of ranges of that size at random. Lines/s, and microseconds a line and a range."""
    def measure(folder: str, seconds: float) -> dict:
        path = mapped_file(folder, REGION_MIB)
        said = run(str(BIN / "flush"), path, str(REGION_MIB), str(size), way, str(seconds), timeout=600)
        ranges, lines, took = parse(said, size, must_be_pmem(path))
        places = (REGION_MIB << 20) / size
        check_share(covered(path), size, places * -math.expm1(-ranges / places), True)
        return {"value": lines / took, "line_us": took / lines * 1e6, "range_us": took / ranges * 1e6}
    return measure


def parse(said: str, size: int, pmem: bool) -> tuple[int, int, float]:
    """Ranges, lines and seconds."""
    how, ranges, lines, took = said.split()
    if how != ("PMEM" if pmem else "MSYNC"):
        raise ValueError(f"libpmem was to find {'' if pmem else 'no '}persistent memory, and flush says {how}")
    if not int(ranges) or int(lines) != int(ranges) * size // LINE or not int(took):
        raise ValueError(f"{lines} lines of {ranges} ranges of {size} bytes were flushed in {took} ns")
    return int(ranges), int(lines), int(took) / 1e9

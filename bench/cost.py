# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: what a workload costs besides time, an operation each. Processor time of the whole machine without idle,
context switches, bytes that block devices were told to write, and energy where the processor counts it.

A workload counts around what it times, and no preparation. What the kernel does later is not in it: ext4 and forebay write
data to the SSD after the run, for example. A file system with DAX stores to PMem past its block device: then the bytes
of PMem are not known, and left out.
"""

import glob
import os
import time

from . import systems

SECTOR = 512
PROC = "/proc"
BUSY = (0, 1, 2, 5, 6)      # fields of /proc/stat: user, nice, system, irq, softirq
ENERGY = "/sys/class/powercap/intel-rapl:[0-9]/energy_uj"       # of each processor package


def look() -> dict[str, float]:
    """Totals since the boot, by the names of the figures."""
    seen = {"cpu_us": 1e6 * busy_seconds(), "switches": switches(), "ssd_bytes": written(systems.SSD),
            "pmem_bytes": written(systems.PMEM), "energy_uj": energy()}
    return {name: value for name, value in seen.items() if value is not None}


def busy_seconds(proc: str | os.PathLike = PROC) -> float:
    """Of all processors; time that a hypervisor took is not in it."""
    with open(os.path.join(proc, "stat")) as file:
        fields = file.readline().split()[1:]
    return sum(int(fields[at]) for at in BUSY) / os.sysconf("SC_CLK_TCK")


def switches() -> int:
    with open(os.path.join(PROC, "stat")) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("ctxt "))


def written(device: str) -> int | None:
    """Bytes that a block device was told to write."""
    try:
        with open(f"/sys/class/block/{os.path.basename(device)}/stat") as file:
            return int(file.read().split()[6]) * SECTOR
    except FileNotFoundError:
        return None


def energy() -> int | None:
    """Of all packages together."""
    counters = []
    for path in glob.glob(ENERGY):
        with open(path) as file:
            counters.append(int(file.read()))
    return sum(counters) if counters else None


class Spent:
    """What was spent within `with`, once or several times."""

    def __init__(self):
        self.seconds = 0.0
        self._spent: dict[str, float] = {}

    def __enter__(self):
        self._before, self._began = look(), time.monotonic()
        return self

    def __exit__(self, *exception):
        self.seconds += time.monotonic() - self._began
        for name, value in look().items():
            if name in self._before:
                self._spent[name] = self._spent.get(name, 0) + value - self._before[name]

    def each(self, operations: float) -> dict[str, float]:
        """An operation's part. A counter that was set back, as that of energy is, says nothing."""
        known = {name: value for name, value in self._spent.items() if value > 0 or (value == 0 and name == "ssd_bytes")}
        return {f"cost_{name}": round(value / operations, 3) for name, value in known.items()} if operations else {}

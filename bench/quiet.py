# SPDX-License-Identifier: GPL-2.0-only
"""On the host: how quiet it was while a guest was measured.

Two looks, before and after the guest, see the load average and the QEMU processes that run. Between them the
processor time of all other processes is counted: the busy time of the host without that of this process and its children.
"""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from .cost import busy_seconds

LOAD = 1.0          # a processor, before the guest starts: above that a run is not quiet
OTHERS = 0.25       # processors that other processes kept busy meanwhile, on average


@dataclass(frozen=True)
class Look:
    load: float         # average of the last minute
    qemus: int          # processes, none of them ours: before the guest starts, and after it has ended
    at: float           # seconds
    busy: float         # processor seconds of the host since its boot
    ours: float         # of these, this process and the children that have ended


def look(proc: Path = Path("/proc")) -> Look:
    times = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Look(round(os.getloadavg()[0], 2), qemus(proc), time.monotonic(), busy_seconds(proc),
                sum(usage.ru_utime + usage.ru_stime for usage in times))


def qemus(proc: Path) -> int:
    found = 0
    for name in proc.glob("[0-9]*/comm"):
        try:
            found += name.read_text().startswith("qemu-system")
        except OSError:         # it has ended
            pass
    return found


def verdict(before: Look, after: Look, cpus: int) -> dict:
    """What goes to the results: the figures, the limits, and whether all are kept."""
    others = max(0, after.busy - before.busy - (after.ours - before.ours)) / max(after.at - before.at, 0.001)
    found = {"load": [before.load, after.load], "load_limit": LOAD * cpus,
             "other_qemus": [before.qemus, after.qemus], "others_busy": round(others, 2), "others_limit": OTHERS}
    return found | {"quiet": not problems(found)}


def problems(found: dict) -> list[str]:
    """Why a run was not quiet. The load at the end is the guest's own and is only reported."""
    said = []
    if found["load"][0] > found["load_limit"]:
        said.append(f"load {found['load'][0]:g} before the run, more than {found['load_limit']:g}")
    if max(found["other_qemus"]):
        said.append(f"{max(found['other_qemus'])} other QEMU processes")
    if found.get("others_busy", 0) > found.get("others_limit", OTHERS):
        said.append(f"other processes kept {found['others_busy']:g} processors busy, more than {found['others_limit']:g}")
    return said


def of(results: dict) -> dict:
    """What results say of their host. Older ones have the load before the run only: then `quiet` is None, or False."""
    if "host" in results:
        return results["host"]
    host = results["settings"]["host"]
    found = {"load": [host["load"], None], "load_limit": LOAD * host["cpus"], "other_qemus": [0, 0]}
    return found | {"quiet": False if problems(found) else None}

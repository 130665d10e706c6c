# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: carries out a plan and prints an event a line, as JSON.

The order of the systems rotates from round to round. In a round each system is set up once, from a clean state, and
runs all the workloads, each in a new folder that is removed after it.
"""

import json
import os
import shutil
import sys
import time
import traceback

from . import systems
from .workloads import WORKLOADS

COUNTERS = ("syncs_absorbed", "syncs_lower", "cache_full", "names_recorded", "names_barriers", "names_switched_off")


def main(plan: dict) -> int:
    begin = time.monotonic()
    tell("machine", kernel=os.uname().release)
    rounds = []                 # seconds that each took
    try:
        while len(rounds) < plan["rounds"]:
            spent = time.monotonic() - begin
            if len(rounds) >= plan["least_rounds"] and spent + max(rounds) > plan["budget"]:
                break
            one_round(plan, len(rounds))
            rounds.append(time.monotonic() - begin - spent)
    except Exception as problem:
        tell("failed", problem=f"{type(problem).__name__}: {problem}", trace=traceback.format_exc())
        return 1
    tell("done", rounds=len(rounds))
    return 0


def one_round(plan: dict, number: int) -> None:
    for system in rotated(plan["systems"], number):
        begin = time.monotonic()
        with systems.clean(system) as folder:
            tell("ready", system=system, seconds=round(time.monotonic() - begin, 2))
            for workload in plan["workloads"]:
                tell("start", system=system, workload=workload, round=number + 1)
                begin = time.monotonic()
                sample = measure(workload, folder, plan["seconds"])
                tell("sample", system=system, workload=workload, round=number + 1, sample=sample,
                     seconds=round(time.monotonic() - begin, 2))


def measure(workload: str, folder: str, seconds: float) -> dict:
    """In a new folder of the system's; on the device itself, if that is what the system yields."""
    place = os.path.join(folder, workload) if os.path.isdir(folder) else folder
    if place != folder:
        os.mkdir(place)
    os.sync()
    before, worked = counters(), processors()
    sample = WORKLOADS[workload][2](place, seconds)
    sample["busy"] = busy(worked, processors())
    sample |= {name: value - before[name] for name, value in counters().items() if name in before}
    if not sample["value"] > 0:
        raise ValueError(f"{workload}: measured {sample['value']}")
    if place != folder:
        shutil.rmtree(place)
    os.sync()
    return sample


def counters() -> dict:
    """What a mounted forebay counted so far: sync calls that PMem answered, those that storage did, and why. Else nothing."""
    found = {}
    for name in COUNTERS:
        try:
            with open(f"/sys/fs/forebay/{os.path.basename(systems.PMEM)}/{name}") as file:
                found[name] = int(file.read())
        except FileNotFoundError:
            pass
    return found


def processors() -> list[int]:
    """Ticks of all processors by state; idle and iowait stand at 3 and 4."""
    with open("/proc/stat") as file:
        return [int(ticks) for ticks in file.readline().split()[1:9]]


def busy(before: list[int], after: list[int]) -> float:
    """Percent of their time that the processors worked: near 100 says that storage hardly counts."""
    spent = [late - early for early, late in zip(before, after)]
    return round(100 - 100 * (spent[3] + spent[4]) / max(1, sum(spent)), 1)


def rotated(items: list, by: int) -> list:
    by %= len(items)
    return items[by:] + items[:by]


def tell(event: str, **what) -> None:
    print(json.dumps({"event": event, **what}), flush=True)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        sys.exit(main(json.load(file)))

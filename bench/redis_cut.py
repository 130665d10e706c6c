# SPDX-License-Identifier: GPL-2.0-only
"""On the host: pulls the plug in the middle of a Redis run, then looks whether every acknowledged SET is there.

Only what reached the host before the cut counts as acknowledged. The machine dies by SIGKILL at a random moment; the
devices' images stay as it left them.
"""

import json
import random
import time

from vm.machine import Machine
from vm.settings import CHECKOUT

from .boot import PYTHON, BenchFailed, check
from .devices import Devices
from .progress import say

LEAST, MOST = 2000, 6000        # acknowledged SETs after which the cut comes
PATIENCE = 60                   # seconds for them, after the first


def pull_the_plug(devices: Devices) -> dict:
    """{"acknowledged": N, "lost": n, ...}; BenchFailed if there is nothing to judge."""
    goal = random.randint(LEAST, MOST)
    say(f"power cut: Redis on forebay; the plug is pulled after some {goal:,} SETs")
    acknowledged = _write_until(goal, devices)
    say(f"power cut: {acknowledged:,} SETs were acknowledged; booting again to look for them")
    found = _verify(acknowledged, devices)
    say(f"power cut: {found['lost']} of {found['checked']:,} lost; the mount took {found['mount_seconds']} s")
    return {"acknowledged": acknowledged, "lost": found["lost"], **found}


def _write_until(goal: int, devices: Devices) -> int:
    acknowledged, began, cut = 0, None, False
    with Machine(devices.settings(cwd=CHECKOUT, timeout=300), _guest("write")) as machine:
        for line in machine.lines():
            # The cut may tear the last line: what is left of a number is no greater than it.
            acknowledged = max(acknowledged, int(line))
            began = began or time.monotonic()
            if not cut and (acknowledged >= goal or time.monotonic() > began + PATIENCE):
                time.sleep(random.uniform(0, 0.05))     # not in step with the clients
                machine.cut()
                cut = True
    result = machine.wait()
    if result.reports:
        check(result)
    if not result.was_cut or acknowledged == 0:
        raise BenchFailed(f"the guest ended by itself after {acknowledged} SETs, status {result.status}; "
                          f"its console: {result.console}")
    return acknowledged


def _verify(last: int, devices: Devices) -> dict:
    said = []
    with Machine(devices.settings(cwd=CHECKOUT, timeout=300), _guest("verify", str(last))) as machine:
        said.extend(machine.lines())
    check(machine.wait())
    return json.loads(said[-1])


def _guest(*arguments: str) -> list[str]:
    return [*PYTHON, "bench.redis_cut_guest", *arguments]

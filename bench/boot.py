# SPDX-License-Identifier: GPL-2.0-only
"""On the host: one boot of the test machine that carries out a plan (bench/guest.py)."""

import json
import time
from collections.abc import Iterable

from vm.machine import Machine
from vm.settings import CHECKOUT

from .devices import Devices
from .progress import say

PYTHON = ["/usr/bin/python3", "-SsE", "-u", "-m"]      # -S, -s, -E: nothing to look for but the standard library
HANGS = 3600            # seconds after which a machine is given up


class BenchFailed(Exception):
    """No result; the message says why."""


def carry_out(plan: dict, devices: Devices) -> tuple[list[dict], dict]:
    """The samples, and what the guest said of itself."""
    path = CHECKOUT / "build" / "bench" / "plan.json"
    path.write_text(json.dumps(plan))
    settings = devices.settings(cwd=CHECKOUT, timeout=HANGS)
    with Machine(settings, [*PYTHON, "bench.guest", str(path)]) as machine:
        samples, guest = follow(machine.lines(), plan)
    check(machine.wait())
    return samples, guest


def follow(lines: Iterable[str], plan: dict) -> tuple[list[dict], dict]:
    """The events of bench/guest.py."""
    samples, guest, failure = [], {}, None
    for line in lines:
        event = json.loads(line)
        kind = event.pop("event")
        if kind == "sample":
            samples.append(event)
            say(f"round {event['round']}/{plan['rounds']}  {event['system']:<18} {event['workload']:<18} "
                f"{event['sample']['value']:>12,.0f}   ({event['seconds']:.1f} s)")
        elif kind == "ready":
            say(f"{event['system']} is ready ({event['seconds']:.1f} s)")
        elif kind in ("machine", "done"):
            guest |= event
        elif kind == "failed":
            failure = event
    if failure:
        raise BenchFailed(f"in the guest: {failure['problem']}\n{failure['trace']}")
    return samples, guest


def check(result) -> None:
    """The machine must have ended well, without a report from its kernel."""
    if result.reports:
        raise BenchFailed("the guest's kernel reported:\n" + "\n".join(result.reports))
    if result.status:
        raise BenchFailed(f"the guest ended with status {result.status}; its console: {result.console}")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

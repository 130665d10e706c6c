# SPDX-License-Identifier: GPL-2.0-only
"""Databases at work and the plug pulled, on the host's side: all rows that were acknowledged before the cut
must be there after it.

Each boot first checks everything that was acknowledged in all boots before it, then goes on. The last one
only checks, unmounts, compares and runs fsck.
"""

import json
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

from vm.machine import Machine
from vm.settings import CHECKOUT

HERE = Path(__file__).resolve().parent
CLIENTS = 6             # that say what was committed; cutload.py starts them


def run(count, settings, fs):
    print(f"databases on forebay over {fs}, {count} power cuts:", flush=True)
    keep = CHECKOUT / "build" / "apps" / f"cuts-{fs}"
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    acknowledged, good = {}, True
    for boot in range(count + 1):
        (keep / "acknowledged.json").write_text(json.dumps(acknowledged))
        command = ["/usr/bin/python3", "-B", str(HERE / "cutload.py"), fs, str(keep / "acknowledged.json"),
                   "make" if boot == 0 else "check" if boot < count else "last"]
        good = one_boot(Machine(replace(settings, keep=keep), command), boot < count, acknowledged)
        if not good:
            print(f"  FAILED; the devices are in {keep}")
            return False
    print(f"databases: all well, {sum(acknowledged.values())} commits acknowledged, none lost", flush=True)
    shutil.rmtree(keep)
    return True


def one_boot(machine, cut, acknowledged):
    """Reads what is acknowledged; pulls the plug some time after all clients have begun. No client ends before the cut."""
    seen, until, ended = set(), None, []
    with machine:
        for line in machine.lines():        # after the cut too: what was said before it
            word, *rest = line.split(" ")
            if word == "ack" and len(rest) == 2 and rest[1].isdecimal():
                acknowledged[rest[0]] = int(rest[1])
                seen.add(rest[0])
            elif until is None or word == "client":
                print(f"  {line}", flush=True)
            if word == "client":
                ended.append(line)
            if cut and until is None and len(seen) == CLIENTS:
                until = time.monotonic() + random.uniform(3, 12)
            if until and time.monotonic() > until:
                machine.cut()
    result = machine.wait()
    if result.reports:
        print("\n".join(result.reports))
    print(f"  {'cut' if result.was_cut else 'ended'} after {result.seconds:.0f} s: {acknowledged}", flush=True)
    return not result.reports and not ended and result.was_cut == cut and (cut or result.status == 0)

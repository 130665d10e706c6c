# SPDX-License-Identifier: GPL-2.0-only
"""`bench/run NAME --on host`: the experiment on two devices of this machine, without a guest.

Both devices are overwritten. A device in use is refused; one that holds data is, too, without --overwrite.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from vm.settings import CHECKOUT

from . import packages
from .boot import PYTHON, BenchFailed, follow
from .commands import CommandFailed, run
from .progress import say
from .systems import OVER_NAMESPACE

ENDS = 1 << 20          # bytes at either end that are zeros if a device holds nothing


class Refused(RuntimeError):
    """A device that is not overwritten; the message says why."""


@dataclass(frozen=True)
class Host:
    ssd: str
    pmem: str

    def look(self, overwrite: bool) -> None:
        """Says what will be overwritten, or refuses."""
        if os.geteuid():
            raise Refused("--on host makes file systems and mounts them: run it as root")
        if os.path.realpath(self.ssd) == os.path.realpath(self.pmem):
            raise Refused(f"{self.ssd}: the SSD and the PMem must be two devices")
        for device in (self.ssd, self.pmem):
            if problem := in_use(device):
                raise Refused(f"{device} {problem}: not overwritten")
        if not has_dax(self.pmem):
            raise Refused(f"{self.pmem} has no DAX: it is no persistent memory")
        found = {device: holds(device) for device in (self.ssd, self.pmem)}
        for device, what in found.items():
            if what and not overwrite:
                raise Refused(f"{device} holds {what}: --overwrite destroys that")
        for device, what in found.items():
            say(f"overwrites {device}, {size_of(device) >> 20} MiB, which holds {what or 'nothing'}")

    def carry_out(self, plan: dict) -> tuple[list[dict], dict]:
        refuse_plan(plan)
        path = CHECKOUT / "build/bench/plan.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(plan))
        environment = os.environ | {"BENCH_SSD": self.ssd, "BENCH_PMEM": self.pmem}
        with subprocess.Popen([*PYTHON, "bench.guest", str(path)], cwd=CHECKOUT, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True) as process:
            found = follow(process.stdout, plan)
        if process.returncode:
            raise BenchFailed(f"bench.guest ended with status {process.returncode}")
        return found


def refuse_plan(plan: dict) -> None:
    """What changes a namespace, or needs programs that only a guest is to have, is none for a host."""
    if names := sorted(set(plan["systems"]) & set(OVER_NAMESPACE)):
        raise Refused(f"{', '.join(names)}: set up by changing a namespace of the PMem, which --on host doesn't do")
    if lacking := packages.lacking(plan["workloads"]):
        raise Refused(f"{', '.join(lacking)} not installed, and --on host installs nothing")


def in_use(device: str) -> str:
    """Why a device can't be overwritten, if it can't."""
    try:
        found = json.loads(run("lsblk", "--json", "--bytes", "-o", "NAME,PATH,TYPE,RO,MOUNTPOINTS", device))["blockdevices"][0]
    except CommandFailed:
        return "is no block device"
    if problem := tree_in_use(found):
        return problem
    try:
        os.close(os.open(device, os.O_RDWR | os.O_EXCL))
    except OSError as problem:
        return f"can't be had alone: {problem.strerror}"
    return ""


def tree_in_use(found: dict) -> str:
    """By what lsblk says of it."""
    places = [place for place in found["mountpoints"] if place]
    if places:
        return f"is in use as {', '.join(places)}"
    if found.get("children"):
        return f"has {', '.join(child['path'] for child in found['children'])} on it"
    return "is read-only" if found["ro"] else ""


def holds(device: str) -> str:
    """What is on it, in words; nothing if it has no signature and both ends are zeros."""
    said = run("wipefs", "--no-act", "--json", device)
    kinds = [entry["type"] for entry in json.loads(said)["signatures"]] if said.strip() else []
    if kinds:
        return ", ".join(dict.fromkeys(kinds))
    with open(device, "rb") as file:
        begins = file.read(ENDS)
        file.seek(max(0, size_of(device) - ENDS))
        return "data of an unknown kind" if any(begins) or any(file.read(ENDS)) else ""


def size_of(device: str) -> int:
    with open(device, "rb") as file:
        return file.seek(0, os.SEEK_END)


def has_dax(device: str) -> bool:
    attribute = Path("/sys/class/block", os.path.basename(os.path.realpath(device)), "queue/dax")
    return attribute.exists() and attribute.read_text().strip() == "1"

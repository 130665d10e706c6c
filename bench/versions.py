# SPDX-License-Identifier: GPL-2.0-only
"""What the results were made with. The guest runs the host's programs, so the host knows."""

import os
import platform
import subprocess

from vm.accel import kvm_works
from vm.settings import CHECKOUT


def versions() -> dict:
    return {
        "commit": _first("git", "-C", str(CHECKOUT), "describe", "--always", "--dirty", "--abbrev=12"),
        "qemu": _first("qemu-system-x86_64", "--version"),
        "fio": _first("fio", "--version"),
        "dpkg": _first("dpkg", "--version"),
        "git": _first("git", "--version"),
        "redis": _first("redis-server", "--version"),
        "dmsetup": _first("dmsetup", "--version"),
        "mkfs.ext4": _first("mkfs.ext4", "-V"),
    }


def host() -> dict:
    return {"accelerator": "kvm" if kvm_works() else "tcg", "cpus": os.cpu_count(), "processor": _processor(),
            "kernel": platform.release(), "load": round(os.getloadavg()[0], 2)}


def _first(*argv: str) -> str:
    """The first line of what a program says of itself, on either stream."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip().splitlines()
    return said[0] if said else "unknown"


def _processor() -> str:
    with open("/proc/cpuinfo") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "unknown")

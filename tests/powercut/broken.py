# SPDX-License-Identifier: GPL-2.0-only
"""Modules with a fault put in on purpose, to show that the campaign notices: built with -DNAME, apart from the good ones."""

import subprocess

from vm.settings import CHECKOUT


def build(name, kernel="stock", module="forebay"):
    """A module with the fault NAME (a build switch, FB_BREAK_... or FOREBAY_BREAK_...), or with several: A+B."""
    folder = f"build/powercut/{name}"
    flags = " ".join(f"-D{each}" for each in name.split("+"))
    subprocess.run(["make", "-s", "-C", CHECKOUT, "modules", f"KERNEL={kernel}", f"KMOD={folder}", f"KCFLAGS={flags}"],
                   check=True)
    return next((CHECKOUT / folder).rglob(f"{module}.ko"))


def load(module, fault, kernel="stock"):
    """What a shell says to load a module: as it is, or with a fault, which modprobe doesn't know."""
    if not fault:
        return f"modprobe {module}"
    path = build(fault, kernel, module)
    return f'for needed in $(modinfo -F depends {path} | tr , " "); do modprobe $needed; done; insmod {path}'

# SPDX-License-Identifier: GPL-2.0-only
"""Modules with a fault put in on purpose, to show that the campaign notices: built with -DNAME, apart from the good ones."""

import subprocess

from vm.settings import CHECKOUT


def build(name, kernel="stock", module="forebay"):
    """A module with the fault NAME (a build switch, FB_BREAK_... or FOREBAY_BREAK_...)."""
    folder = f"build/powercut/{name}"
    subprocess.run(["make", "-s", "-C", CHECKOUT, "modules", f"KERNEL={kernel}", f"KMOD={folder}", f"KCFLAGS=-D{name}"],
                   check=True)
    return next((CHECKOUT / folder).rglob(f"{module}.ko"))

# SPDX-License-Identifier: GPL-2.0-only
"""Builds tests/cluster/linear once and asks it about a history."""

import shutil
import subprocess

from vm.settings import CHECKOUT, SetupError

SOURCE = CHECKOUT / "tests/cluster/linear"
PROGRAM = CHECKOUT / "build/cluster/linear"
LOST = ": not linearizable"     # how a line ends; else the search took too long


def build():
    """Returns when the program is there and newer than its sources."""
    sources = [SOURCE / name for name in ("main.go", "go.mod", "go.sum")]
    if PROGRAM.exists() and all(PROGRAM.stat().st_mtime > path.stat().st_mtime for path in sources):
        return
    if not shutil.which("go"):
        raise SetupError("go is missing: run scripts/setup --for cluster")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["go", "build", "-o", str(PROGRAM), "."], cwd=SOURCE).returncode:
        raise SetupError("tests/cluster/linear can't be built: go has to fetch porcupine once, from its module proxy")


def violations(lines):
    """What is wrong with a history (lines as history.py writes them): one line for each key; none if it is linearizable."""
    build()
    done = subprocess.run([PROGRAM], input="\n".join(lines), stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise ValueError(f"{PROGRAM} ended with status {done.returncode}")
    return done.stdout.splitlines()

# SPDX-License-Identifier: GPL-2.0-only
"""Builds the programs in Go: each is the module in a folder of tests/cluster, and build/cluster has it under the folder's name."""

import shutil
import subprocess

from vm.settings import CHECKOUT, SetupError


def built(name, package="."):
    """The program's path. It is built if there is none that is newer than its sources; `package`: in the module, or one that it requires."""
    source, program = CHECKOUT / "tests/cluster" / name, CHECKOUT / "build/cluster" / name
    if program.exists() and all(program.stat().st_mtime > path.stat().st_mtime for path in source.iterdir()):
        return program
    if not shutil.which("go"):
        raise SetupError("go is missing: run scripts/setup --for cluster")
    program.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["go", "build", "-o", str(program), package], cwd=source).returncode:
        raise SetupError(f"{source.relative_to(CHECKOUT)} can't be built: go has to fetch what it requires once, from its module proxy")
    return program

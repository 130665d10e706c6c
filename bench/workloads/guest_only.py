# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: programs that the host hasn't installed. bench/packages.py unpacked them; here they come to their places."""

import os

from ..commands import run

UNPACKED = os.path.join(os.path.dirname(__file__), "../../build/bench/packages")


def install(word: str) -> None:
    """Copies the files of this word's packages into the guest's root, once in a boot. Links to folders stay what they are.

    On a host, whose devices are named, nothing is copied: bench/host.py has seen to it that the programs are there.
    """
    if "BENCH_SSD" in os.environ:
        return
    done = f"/run/bench-{word}.installed"
    if not os.path.exists(done):
        run("sh", "-c", "tar -C $0 -c . | tar -C / -x --keep-directory-symlink", f"{UNPACKED}/{word}/root")
        with open(done, "w"):
            pass

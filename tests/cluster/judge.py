# SPDX-License-Identifier: GPL-2.0-only
"""Asks tests/cluster/linear about a history."""

import subprocess

from .golang import built

LOST = ": not linearizable"     # how a line ends; else the search took too long


def violations(lines):
    """What is wrong with a history (lines as history.py writes them): one line for each key; none if it is linearizable."""
    program = built("linear")
    done = subprocess.run([program], input="\n".join(lines), stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise ValueError(f"{program} ended with status {done.returncode}")
    return done.stdout.splitlines()

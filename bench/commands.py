# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: run a program and say what it said if it failed. (Light imports only: the guest is slow.)"""

import subprocess


class CommandFailed(Exception):
    """A program ended with an error; the message has its words."""


def run(*argv: str, timeout: float = 120) -> str:
    """Standard output of a program that must succeed."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise CommandFailed(f"{' '.join(argv)}: not done after {timeout:g} s") from None
    if done.returncode:
        words = (done.stderr + done.stdout).strip()
        raise CommandFailed(f"{' '.join(argv)}: status {done.returncode}: {words[-2000:]}")
    return done.stdout

# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: run a program and say what it said if it failed. (Light imports only: the guest is slow.)"""

import subprocess


class CommandFailed(Exception):
    """A program ended with an error; the message has its words."""


def run(*argv: str, timeout: float = 120) -> str:
    """Standard output of a program that must succeed."""
    with start(*argv) as program:
        return finish(program, timeout)


def start(*argv: str) -> subprocess.Popen:
    """A program for finish(). Its output isn't buffered here, so a reader may take the first line of it."""
    return subprocess.Popen(argv, bufsize=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(program: subprocess.Popen, timeout: float) -> str:
    """What it says until its end, on standard output. It must succeed."""
    name = " ".join(program.args)
    try:
        output, errors = (words.decode() for words in program.communicate(timeout=timeout))
    except subprocess.TimeoutExpired:
        program.kill()
        raise CommandFailed(f"{name}: not done after {timeout:g} s") from None
    except BaseException:
        program.kill()
        raise
    if program.returncode:
        raise CommandFailed(f"{name}: status {program.returncode}: {(errors + output).strip()[-2000:]}")
    return output

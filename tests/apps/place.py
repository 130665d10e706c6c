# SPDX-License-Identifier: GPL-2.0-only
"""The class that each application's test gets, and how it runs programs; a failure shows the program's
output."""

import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

TAIL = 6000         # characters of a failed program's output that are shown


class Failure(Exception):
    """The application, or what it stored, is not as it must be."""


@dataclass
class Place:
    folder: Path            # on forebay, empty, the application's own
    plain: Path             # the same on the lower file system itself, beside what forebay is mounted over
    fs: str                 # what the lower file system is
    small: bool             # less of everything: for the debug kernel
    notes: list = field(default_factory=list)       # what a reader of the results should know

    def size(self, full, small):
        return small if self.small else full

    def note(self, text):
        self.notes.append(text)


def as_user(user, argv):
    return ["runuser", "-u", user, "--", *map(str, argv)] if user else [str(word) for word in argv]


def call(*argv, user=None, cwd=None, timeout=150, ok=(0,), env=None, stdin=None):
    """Runs a program and returns its output. Raises Failure if it exits with a status that isn't in
    `ok`, or not in time."""
    argv = as_user(user, argv)
    process = subprocess.Popen(argv, cwd=cwd or "/", stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    try:
        output, _ = process.communicate(stdin and stdin.encode(), timeout)
        ended = f"status {process.returncode}"
    except subprocess.TimeoutExpired:
        stacks = blocked_stacks()
        process.kill()
        try:
            output, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            output = b"(it does not die)"
        ended = f"not done after {timeout} s\n{stacks}"
        process.returncode = None
    text = output.decode(errors="replace")
    if process.returncode not in ok:
        raise Failure(f"{shlex.join(argv)}: {ended}\n{text[-TAIL:]}")
    return text


def expect(condition, text):
    if not condition:
        raise Failure(text)


def blocked_stacks():
    """Where in the kernel the processes are that wait uninterruptibly: for a test that hangs."""
    found = []
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        try:
            name, state = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            if state.split()[0] == "D":
                found.append(f"{task.name} {name}:\n{(task / 'stack').read_text()}")
        except OSError:
            pass
    return "\n".join(found)

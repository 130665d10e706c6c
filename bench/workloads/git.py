# SPDX-License-Identifier: GPL-2.0-only
"""git, told to sync every object, reference and index: small changes, a commit each.

A change is a new line in five files of four folders. Each commit makes five blobs, five trees and a commit object, moves a
branch, and writes the index and the reflog. In an emulated machine the start of the one process takes most of the time.
"""

import os
import time

from .. import cost
from ..commands import run
from .names import LEAST, result

FILES, FOLDERS, CHANGED = 20, 4, 5
IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
# fsyncMethod=fsync is the default and an fsync() for each file; `batch` would sync many objects by one.
SETTINGS = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
GIT = ("git", *IDENTITY, *SETTINGS)


def commits():
    """Commits/s by `git commit -a`."""
    def measure(folder: str, seconds: float) -> dict:
        begin(folder)
        os.sync()
        times, end = [], time.monotonic() + seconds
        with cost.Spent() as spent:
            while len(times) < LEAST or time.monotonic() < end:
                start = time.monotonic_ns()
                commit(folder, len(times))
                times.append(time.monotonic_ns() - start)
        check(folder, len(times))
        return result(times) | spent.each(len(times))
    return measure


def git(folder: str, *words: str) -> str:
    return run(*GIT, "-C", folder, *words)


def path_of(number: int) -> str:
    return f"d{number % FOLDERS}/f{number % FILES}"


def changed(step: int) -> list[int]:
    """The files that a step changes."""
    return [(step * CHANGED + number) % FILES for number in range(CHANGED)]


def begin(folder: str) -> None:
    """A repository with a first commit of all files, each with one line."""
    run("git", "init", "-q", "-b", "main", folder)
    for number in range(FILES):
        os.makedirs(os.path.join(folder, f"d{number % FOLDERS}"), exist_ok=True)
        with open(os.path.join(folder, path_of(number)), "w") as file:
            file.write("begin\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "begin")


def commit(folder: str, step: int) -> None:
    for number in changed(step):
        with open(os.path.join(folder, path_of(number)), "a") as file:
            file.write(f"step {step}\n")
    git(folder, "commit", "-q", "-a", "-m", f"step {step}")


def check(folder: str, done: int) -> None:
    """The history has every step in its order, every object is whole, and the files are those of the last commit."""
    subjects = git(folder, "log", "--format=%s", "--reverse").splitlines()
    if subjects != ["begin", *(f"step {step}" for step in range(done))]:
        raise ValueError(f"git: {len(subjects)} commits after {done} steps and a first one, or others than these")
    for number in range(FILES):
        must = ["begin", *(f"step {step}" for step in range(done) if number in changed(step))]
        if git(folder, "show", f"HEAD:{path_of(number)}").splitlines() != must:
            raise ValueError(f"git: {path_of(number)} has other lines than its {len(must)}")
    if differs := git(folder, "status", "--porcelain"):
        raise ValueError(f"git: files differ from the last commit: {differs}")
    git(folder, "fsck", "--full", "--strict", "--no-dangling")

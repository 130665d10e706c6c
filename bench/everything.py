# SPDX-License-Identifier: GPL-2.0-only
"""`bench/run all`: every experiment once, at smoke size, then the report of that.

Smoke size is one round of a second a run, and at most three workloads of an experiment, the first and the last among them. It
shows that all works, not how fast anything is. An experiment with results is not run again: a run that was stopped continues.
"""

import time
from collections.abc import Callable
from pathlib import Path

from vm.settings import SetupError

from .boot import BenchFailed
from .experiments import EXPERIMENTS, Experiment
from .progress import say

MOST = 3                # workloads of an experiment
SECONDS = 1


def plan(experiment: Experiment) -> dict:
    small = experiment.plan(rounds=1)
    return small | {"workloads": some(small["workloads"]), "seconds": min(SECONDS, experiment.seconds)}


def some(names: list[str]) -> list[str]:
    """Spread evenly; the first and the last are among them."""
    if len(names) <= MOST:
        return names
    return [names[number * (len(names) - 1) // (MOST - 1)] for number in range(MOST)]


def points(name: str) -> int:
    made = plan(EXPERIMENTS[name])
    return len(made["workloads"]) * len(made["systems"])


def run(measure: Callable[[str, dict, Path], None], folder: Path) -> list[str]:
    """Carries out what has no results in the folder. Returns what failed; the next experiment begins nevertheless."""
    missing = [name for name in EXPERIMENTS if not (folder / name / "results.json").exists()]
    say(f"{len(missing)} of {len(EXPERIMENTS)} experiments have no results in {folder}")
    began, done, failed = time.monotonic(), 0, []
    for name in missing:
        say(f"{name}{left(time.monotonic() - began, done, sum(map(points, missing)))}")
        try:
            measure(name, plan(EXPERIMENTS[name]), folder / name)
        except (BenchFailed, SetupError, OSError, RuntimeError) as problem:
            say(f"{name} failed: {problem}")
            failed.append(name)
        done += points(name)
    return failed


def left(spent: float, done: int, of: int) -> str:
    """From how long a point took so far."""
    return f": {done} of {of} points, some {spent / done * (of - done) / 60:.0f} min left" if done else ""

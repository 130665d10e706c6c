# SPDX-License-Identifier: GPL-2.0-only
"""What the results answer: ratios, losses, agreement of two runs, and whether a run may be quoted."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from .. import quiet
from ..table import number
from .questions import VOID, Compare, Question

LEVEL = 0.05            # a ratio so near to 1 is neither ahead nor behind
ENOUGH = 3              # rounds of a result that may be quoted
COUNTS = ("no", "one", "two")
LESS_IS_BETTER = ("cpu_s_per_gib",)         # and times (..._us)
MACHINE = ("smp", "qemu", "pmem", "nvme", "mem")        # settings that make two runs comparable


@dataclass
class Run:
    """One results.json, without the rows that are void."""
    path: Path
    results: dict
    void: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.stem if self.path.stem != "results" else self.path.parent.name

    @property
    def rows(self) -> list[dict]:
        return self.results["rows"]

    @property
    def rounds(self) -> int:
        return min(len(row["runs"]) for row in self.rows)


@dataclass(frozen=True)
class Point:
    """A ratio of two medians."""
    workload: str
    of: str
    to: str
    ratio: float
    clear: bool | None          # no run of one is within those of the other; None: one round, or runs were not kept

    def says(self) -> str:
        return "ahead" if self.ratio > 1 + LEVEL else "behind" if self.ratio < 1 - LEVEL else "level"


def load(folder: Path) -> dict[str, list[Run]]:
    """By experiment, that with the most rows first; from NAME.json or NAME/results.json."""
    found: dict[str, list[Run]] = {}
    for path in sorted([*folder.glob("*.json"), *folder.glob("*/results.json")]):
        results = json.loads(path.read_text())
        if "experiment" in results:
            run = without_void(Run(path, results))
            found.setdefault(results["experiment"], []).append(run)
    for runs in found.values():
        runs.sort(key=lambda run: -len(run.rows))
    return found


def without_void(run: Run) -> Run:
    for void in VOID:
        if run.results["experiment"] == void.experiment and run.results["began"] < void.before:
            kept = [row for row in run.rows if not row["workload"].startswith(void.workloads)]
            if len(kept) < len(run.rows):
                run.void.append(f"{void.workloads} is void: {void.reason}.")
                run.results = run.results | {"rows": kept}
    return run


def status(run: Run | None) -> str:
    """measured, two rounds, one round or not measured; and what is known of the host."""
    if run is None:
        return "not measured"
    said = "measured" if run.rounds >= ENOUGH else f"{COUNTS[run.rounds]} round{'s' if run.rounds > 1 else ''}"
    host = quiet.of(run.results)
    if host["quiet"] is False:
        return f"{said}, busy host ({'; '.join(quiet.problems(host))})"
    if host["quiet"] is None:
        return f"{said}; load {host['load'][0]:g} before, not known after"
    return f"{said}, quiet host"


def points(compare: Compare, rows: list[dict]) -> list[Point]:
    """Those that the rows answer."""
    by_name = {(row["workload"], row["system"]): row for row in rows}
    found = []
    for of, to in compare.pairs():
        for workload in compare.workloads:
            ours, theirs = by_name.get((workload, of)), by_name.get((workload, to))
            if ours and theirs and ours.get(compare.figure) and theirs.get(compare.figure):
                found.append(point(compare, workload, ours, theirs))
    return found


def point(compare: Compare, workload: str, ours: dict, theirs: dict) -> Point:
    ratio = ours[compare.figure] / theirs[compare.figure]
    if compare.figure in LESS_IS_BETTER or compare.figure.endswith("_us"):
        ratio = 1 / ratio
    clear = None
    if compare.figure == "value" and min(len(ours["runs"]), len(theirs["runs"])) > 1:
        clear = ours["spread"][0] > theirs["spread"][1] or ours["spread"][1] < theirs["spread"][0]
    return Point(workload, ours["system"], theirs["system"], ratio, clear)


def times(points_: list[Point]) -> str:
    """For instance "1.6 to 4.1 ×"."""
    ratios = sorted(point.ratio for point in points_)
    low, high = number(ratios[0]), number(ratios[-1])
    return f"{low} ×" if low == high else f"{low} to {high} ×"


def sentence(compare: Compare, found: list[Point]) -> str:
    """One sentence on what was found."""
    what = {"value": ""}.get(compare.figure, f", by {compare.figure}")
    said = [point.says() for point in found]
    if len(found) == 1:
        return f"{compare.of} is at {times(found)} of {compare.to}{what}: {said[0]}."
    counted = ", ".join(f"{word} at {said.count(word)}" for word in ("ahead", "level", "behind") if word in said)
    return f"{compare.of} is at {times(found)} of {compare.to}{what}: {counted} of {len(found)} points."


def unclear(found: list[Point]) -> str:
    """How far the spread allows a verdict."""
    if all(point.clear is None for point in found):
        return "spread not known"
    inside = sum(point.clear is False for point in found)
    return f"runs overlap at {inside}" if inside else "runs don't overlap"


@dataclass(frozen=True)
class Loss:
    """The points of one question at which ours is behind, the worst first."""
    question: Question
    points: list[Point]
    of: int                     # points that were compared
    status: str

    def others(self) -> str:
        """Of each further system that is ahead, the worst point."""
        worst: dict[str, Point] = {}
        for point in self.points:
            worst.setdefault(point.to, point)
        return ", ".join(f"{point.to} {number(point.ratio)} ×" for point in list(worst.values())[1:])


def losses(questions: tuple[Question, ...], results: dict[str, list[Run]]) -> list[Loss]:
    """Where ours is behind, the worst first."""
    found = []
    for question in questions:
        run = answering(question, results)
        if run:
            compared = [point for compare in question.compare if not compare.peers for point in points(compare, run.rows)]
            behind = sorted((point for point in compared if point.says() == "behind"), key=lambda point: point.ratio)
            if behind:
                found.append(Loss(question, behind, len(compared), status(run)))
    return sorted(found, key=lambda loss: loss.points[0].ratio)


def answering(question: Question, results: dict[str, list[Run]]) -> Run | None:
    """The run of the question's experiment, if it has what is asked for."""
    for run in results.get(question.experiment, ()):
        named = any(row["workload"] == reading.workload for reading in question.readings for row in run.rows)
        if named or any(points(compare, run.rows) for compare in question.compare):
            return run
    return None


def spread(run: Run) -> str:
    """How far the runs of a point lie apart."""
    if run.rounds < 2:
        return "one round: no spread"
    apart = sorted((row["spread"][1] - row["spread"][0]) / row["value"] for row in run.rows if row["value"])
    return (f"the runs of a point lie {percent(apart[len(apart) // 2])} apart in the middle of all points, "
            f"{percent(apart[-1])} at most")


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def agreement(runs: list[Run]) -> list[str]:
    """Of the first run with each further one of the same experiment on the same kind of machine."""
    said = []
    first = runs[0]
    for other in runs[1:]:
        differs = [name for name in MACHINE if first.results["settings"].get(name) != other.results["settings"].get(name)]
        if differs:
            said.append(f"Not compared ({other.name}): another machine ({', '.join(differs)}).")
            continue
        known = {(row["workload"], row["system"]): row for row in first.rows}
        pairs = [(known[key], row) for row in other.rows if (key := (row["workload"], row["system"])) in known]
        if pairs:
            far = sorted(abs(one["value"] - two["value"]) / min(one["value"], two["value"]) for one, two in pairs)
            within = sum(one["spread"][0] <= two["spread"][1] and two["spread"][0] <= one["spread"][1] for one, two in pairs)
            said.append(f"Run again ({other.name}): {len(pairs)} points in common, {percent(far[len(far) // 2])} apart in the middle, {percent(far[-1])} at most; "
                        f"the spreads of {within} overlap.")
    return said

# SPDX-License-Identifier: GPL-2.0-only
"""From samples to rows, ratios and verdicts."""

from statistics import median

from .experiments import Target
from .workloads import WORKLOADS

REFERENCES = ("ext4", "tmpfs")      # each system's ratio to these is shown


def rows(samples: list[dict], plan: dict) -> list[dict]:
    """One row for each workload and system, in the plan's order; `samples` are the guest's sample events."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for event in samples:
        groups.setdefault((event["workload"], event["system"]), []).append(event["sample"])
    return [row(workload, system, groups[workload, system])
            for workload in plan["workloads"] for system in plan["systems"]]


def row(workload: str, system: str, samples: list[dict]) -> dict:
    runs = [sample["value"] for sample in samples]
    made = {"workload": workload, "system": system, "metric": WORKLOADS[workload][0], "value": median(runs),
            "spread": [min(runs), max(runs)], "runs": runs}
    others = sorted({name for sample in samples for name in sample} - {"value"})
    # A series or a distribution has no median: it is that of the run whose value is nearest to it.
    middle = min(samples, key=lambda sample: abs(sample["value"] - made["value"]))
    whole = {name: middle[name] for name in others if isinstance(middle.get(name), (list, dict))}
    return made | whole | {name: median(sample[name] for sample in samples if name in sample) for name in others if name not in whole}


def ratio(table: list[dict], workload: str, of: str, to: str, to_workload: str = "", figure: str = "value") -> float | None:
    """Of the medians, more is better: so of times, the other way round. None if one was not measured."""
    values = {(row["workload"], row["system"]): row.get(figure) for row in table}
    ours, theirs = values.get((workload, of)), values.get((to_workload or workload, to))
    if figure.endswith("_us"):
        ours, theirs = theirs, ours
    return ours / theirs if ours and theirs else None


def ratios(table: list[dict]) -> list[dict]:
    found = []
    for row in table:
        for to in REFERENCES:
            value = ratio(table, row["workload"], row["system"], to)
            if value is not None and to != row["system"]:
                found.append({"workload": row["workload"], "system": row["system"], "to": to, "ratio": value})
    return found


def verdicts(table: list[dict], targets: tuple[Target, ...]) -> list[dict]:
    """Each target with what was measured; those that the systems chosen cannot answer are left out."""
    found = []
    for target in targets:
        value = ratio(table, target.workload, target.of, target.to, target.to_workload, target.figure)
        if value is not None:
            found.append({"workload": target.workload, "of": target.of, "to": target.to,
                          "to_workload": target.to_workload or target.workload,
                          "figure": target.figure, "at_least": target.at_least, "ratio": value, "ok": value >= target.at_least})
    return found

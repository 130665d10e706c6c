# SPDX-License-Identifier: GPL-2.0-only
"""The interface experiment as lines (hybrid-storage-thesis, figure 3.2): bandwidth and processor time, by block size and by
threads."""

import re
from itertools import cycle
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot       # noqa: E402

from .chart import styles           # noqa: E402

NAME = re.compile(r"interface-(\w+)-t(\d+)")
FIGURES = {"value": "MiB/s", "cpu_s_per_gib": "processor seconds for a GiB"}
MARKS = "os"


def fits(results: dict) -> bool:
    """Whether the results are drawn here: every workload is one of that experiment."""
    return all(NAME.fullmatch(row["workload"]) for row in results["rows"])


def draw(results: dict, path: Path) -> None:
    rows = [(*NAME.fullmatch(row["workload"]).groups(), row) for row in results["rows"]]
    blocks, threads = (list(dict.fromkeys(row[part] for row in rows)) for part in (0, 1))
    figure, panels = pyplot.subplots(2, 2, figsize=(12, 8), layout="constrained")
    for line, (name, unit) in zip(panels, FIGURES.items()):
        curves(line[0], rows, (0, 1), blocks, (threads[0], threads[-1]), name)
        curves(line[1], rows, (1, 0), threads, (blocks[0], blocks[-2:][0]), name)
        for panel, what in zip(line, ("bytes a block", "threads")):
            panel.set(yscale="log", xlabel=what, ylabel=unit)
            panel.grid(alpha=0.3)
            panel.legend(fontsize=8)
    figure.suptitle(f"Forebay, {results['experiment']}: random writes, one boot; an emulated machine: only the ratios mean "
                    "something", fontsize=9)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def curves(panel, rows: list, parts: tuple[int, int], xs: list[str], others: tuple[str, str], figure: str) -> None:
    """One line for each system, in its colour, and each of two values of the other parameter, of the points that were measured."""
    panel.set_xticks(range(len(xs)), xs)
    for system, style in styles(list(dict.fromkeys(row[2]["system"] for row in rows))).items():
        for other, mark in zip(dict.fromkeys(others), cycle(MARKS)):
            values = {xs.index(row[parts[0]]): row[2][figure] for row in rows if row[2]["system"] == system and row[parts[1]] == other}
            label = f"{system}, {other} threads" if parts == (0, 1) else f"{system}, blocks of {other}"
            panel.plot(sorted(values), [values[x] for x in sorted(values)], label=label, **style | {"marker": mark})

# SPDX-License-Identifier: GPL-2.0-only
"""The interface experiment is drawn whatever part of it was measured."""

import pytest
from matplotlib.axes import Axes

from bench import curves, everything
from bench.experiments import EXPERIMENTS, INTERFACE

SYSTEMS = ("bare-ssd", "forebay-emu")


def results(workloads, systems=SYSTEMS):
    rows = [{"workload": workload, "system": system, "metric": "MiB/s", "value": 10.0, "spread": [9, 11], "cpu_s_per_gib": 2.0}
            for workload in workloads for system in systems]
    return {"rows": rows, "experiment": "interface"}


@pytest.fixture(name="lines")
def lines_fixture(monkeypatch):
    """(label, names of the points) of each line that is drawn."""
    drawn = []
    plot = Axes.plot

    def noted(self, *args, **how):
        drawn.append((how["label"], list(args[0])))
        return plot(self, *args, **how)
    monkeypatch.setattr(Axes, "plot", noted)
    return drawn


@pytest.mark.parametrize("workloads", [
    INTERFACE, everything.plan(EXPERIMENTS["interface"])["workloads"],
    [name for name in INTERFACE if "-4k-" in name], [name for name in INTERFACE if "-16k-" in name or "-512-" in name],
    [name for name in INTERFACE if name.endswith("t2")], ["interface-4k-t1"], ["interface-4k-t8", "interface-512-t1"],
], ids=("all", "smoke", "one-block", "two-blocks", "one-thread", "one", "two-without-anything-in-common"))
def test_any_part_is_drawn(workloads, lines, tmp_path):
    path = tmp_path / "chart.png"
    curves.draw(results(workloads), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    labels = [label for label, _ in lines]
    assert all(labels.count(label) == 2 for label in labels), "one for each of two figures, and none is drawn twice"
    assert all(points for _, points in lines)


def test_points_stand_in_one_order(lines, tmp_path):
    """A line that lacks the first block leaves its place free."""
    curves.draw(results(("interface-512-t1", "interface-4k-t1", "interface-4k-t8"), SYSTEMS[:1]), tmp_path / "chart.png")
    assert lines[:2] == [("bare-ssd, 1 threads", [0, 1]), ("bare-ssd, 8 threads", [1])]


def test_more_systems_than_marks(tmp_path):
    curves.draw(results(INTERFACE, ("bare-ssd", "forebay-emu", "ext4")), tmp_path / "chart.png")


def test_only_workloads_of_that_experiment_are_curves():
    """`bench/run interface --workloads append-fdatasync` has bars."""
    assert curves.fits(results(INTERFACE))
    assert not curves.fits(results(("append-fdatasync",)))

# SPDX-License-Identifier: GPL-2.0-only
"""Charts have the panels that fit."""

import json
from pathlib import Path

import pytest

from bench import axes, chart, stats
from bench.experiments import EXPERIMENTS

RESULTS = Path(__file__).resolve().parents[2] / "docs/results"


def row(workload, system, value=10.0, **others):
    return {"workload": workload, "system": system, "metric": "ops/s", "value": value, "spread": [value - 1, value + 1]} | others


def kinds(rows):
    return [paint.__name__ for paint, _ in chart.panels(rows)]


def test_depths_make_a_line_and_what_is_alone_a_bar():
    rows = [row(f"depth-{depth}", "transit", depth) for depth in (32, 64, 128)] + [row("untar", "ext4")]
    found, others = axes.panels(rows)
    assert [panel.points() for panel in found] == [[32, 64, 128]]
    assert found[0].lines["transit"][64]["value"] == 64
    assert others == ["untar"]
    assert kinds(rows) == ["lines", "bars"]


def test_two_points_are_no_line():
    assert kinds([row("depth-32", "transit"), row("depth-256", "transit")]) == ["bars", "bars"]


def test_a_workload_may_be_in_several_panels():
    rows = [row(f"blocks-{kib}k-t{threads}", "forebay") for kib, threads in ((4, 1), (16, 1), (128, 1), (128, 2), (128, 4))]
    assert sorted(panel.title for panel in axes.panels(rows)[0]) == ["msync() a block, 1 threads", "msync() a block, 128 KiB"]
    assert axes.panels(rows)[1] == []


def test_sizes_of_a_cache_stand_in_the_systems_names():
    rows = [row("full-cache", f"{policy}-{mib}m", mean_us=5) for policy in ("transit", "lru") for mib in (64, 128, 256)]
    (panel,), others = axes.panels(rows)
    assert list(panel.lines) == ["transit", "lru"] and panel.points() == [64, 128, 256] and not others


def test_phases_are_stacked_and_series_drawn_over_time():
    phased = row("breakdown", "transit", mean_us=20, percent_metadata=25, percent_other=75, percentiles_us={"50": 10, "99": 40})
    timed = row("bare-sustained", "small-writelog", series=[9.0, 0.0, 9.0], window_s=0.5)
    rows = [phased, row("breakdown", "ext4-btt", mean_us=18), timed, row("bare-sustained", "bare-ssd")]
    assert kinds(rows) == ["stacked", "distribution", "over_time"]


def test_ours_is_in_colour_and_limits_are_dashed():
    found = chart.styles(["forebay", "forebay-cpu", "ext4", "dm-writecache", "tmpfs", "small-writelog", "transit-none"])
    assert {name for name, style in found.items() if style["color"] in chart.OURS} == {"forebay", "forebay-cpu", "small-writelog"}
    assert {name for name, style in found.items() if style.get("linestyle") == "--"} == {"tmpfs", "transit-none"}
    assert len({style["color"] for style in list(found.values())[:2]}) == 2


def test_a_series_is_that_of_the_run_in_the_middle():
    samples = [{"value": value, "series": [value], "windows": value} for value in (9, 5, 6)]
    made = stats.row("bare-sustained", "small-writelog", samples)
    assert (made["value"], made["series"], made["windows"]) == (6, [6], 6)


def test_everything_is_drawn(tmp_path):
    rows = [row("breakdown", "transit", mean_us=20, percent_metadata=25, percent_other=75, percentiles_us={"50": 10, "99": 40}),
            row("bare-sustained", "small-writelog", series=[9.0, 0.0, 9.0], window_s=0.5),
            *(row(f"jobs-{jobs}", system, 5 * jobs) for jobs in (1, 2, 4) for system in ("transit", "lru", "ext4-dax")),
            row("untar", "ext4", 1), row("untar", "forebay", 400)]
    results = {"rows": rows, "experiment": "made-up", "versions": {"kernel": "6.12"},
               "settings": {"rounds": 1, "host": {"accelerator": "tcg", "cpus": 2, "load": 3.5}}}
    assert "busy host: load 3.5" in chart.headline(results)
    chart.draw(results, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_every_result_of_ours_has_panels(path):
    results = json.loads(path.read_text())
    assert results["experiment"] in EXPERIMENTS
    assert chart.panels(results["rows"])

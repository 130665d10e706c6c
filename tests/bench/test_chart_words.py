# SPDX-License-Identifier: GPL-2.0-only
"""What `make demo` says and draws: words instead of names, no verdicts, axes that begin at zero."""

import io
import json
from pathlib import Path

import pytest
from matplotlib import pyplot
from rich.console import Console

from bench import chart, table, words
from bench.experiments import EXPERIMENTS

DEMO = Path(__file__).resolve().parents[2] / "docs/results/demo.json"


@pytest.fixture(name="results")
def fixture_results():
    results = json.loads(DEMO.read_text(encoding="utf-8"))
    for target in results["targets"]:
        target["figure"] = "value"      # the file is older than that key
    return results


def test_every_workload_of_the_demo_has_words():
    assert words.TITLES.keys() == words.MEASURED.keys() == set(EXPERIMENTS["demo"].workloads)


def test_what_was_seen(results):
    said = words.seen(results)
    assert said.startswith("Each write was made durable. In a second, Forebay did 4.5 times as many Redis SETs of one client, 2.3 times as many ")
    assert "tmpfs, the limit, which makes nothing durable, did 5.0, 2.7, 52 and 64 times as many." in said
    assert said.endswith("acknowledged 4,864 SETs, and none of them was lost.")
    results["power_cut"]["lost"] = 3
    results["ratios"] = []
    assert words.seen(results) == "Each write was made durable. Then the plug was pulled: Redis on Forebay had acknowledged 4,864 SETs, " \
        "and 3 of them were lost."


@pytest.mark.parametrize("verdicts", [True, False])
def test_table(monkeypatch, results, verdicts):
    """The demo's has no verdicts, and fits 80 columns."""
    said = io.StringIO()
    monkeypatch.setattr(table, "Console", lambda **options: Console(file=said, width=80))
    table.show(results, verdicts)
    shown = said.getvalue()
    assert ("≥" in shown) == verdicts
    assert "Redis SET" in shown and "redis-set-c1 " not in shown and "…" not in shown and "16,806" in shown


def test_panels(results):
    """All linear, from zero; the limit is named."""
    made = chart.panels(results["rows"], linear=True)
    figure, places = pyplot.subplots(1, len(made))
    for place, (paint, what) in zip(places, made):
        paint(place, what)
        assert place.get_yscale() == "linear" and place.get_ylim()[0] == 0
        assert place.get_title() in words.TITLES.values()
        assert [label.get_text() for label in place.get_xticklabels()][-2:] == ["forebay", "tmpfs\n(limit)"]
    pyplot.close(figure)
    assert [patch.get_label() for patch in chart.key(results["rows"])] == ["others", "Forebay", "limit: nothing is durable"]

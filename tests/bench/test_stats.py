# SPDX-License-Identifier: GPL-2.0-only
"""From samples to verdicts."""

import pytest

from bench import stats
from bench.experiments import EXPERIMENTS, Experiment, Target
from bench.guest import rotated
from bench.systems import BARE, SYSTEMS
from bench.workloads import WORKLOADS

J1 = "fio-fdatasync-j1"
PLAN = {"workloads": [J1], "systems": ["ext4", "forebay", "tmpfs"]}


def event(system, value, **others):
    return {"workload": J1, "system": system, "sample": {"value": value, **others}}


SAMPLES = [event("tmpfs", 40000), event("ext4", 300, sync_p50_us=3000), event("forebay", 27000),
           event("forebay", 30000), event("ext4", 400, sync_p50_us=2000), event("tmpfs", 60000),
           event("ext4", 200, sync_p50_us=9000), event("forebay", 33000), event("tmpfs", 50000)]


def test_rows_have_median_spread_and_runs_in_the_plans_order():
    table = stats.rows(SAMPLES, PLAN)
    assert [row["system"] for row in table] == PLAN["systems"]
    assert table[0] == {"workload": J1, "system": "ext4", "metric": "ops/s", "value": 300, "spread": [200, 400],
                        "runs": [300, 400, 200], "sync_p50_us": 3000}
    assert table[1]["value"] == 30000


def test_a_row_without_samples_is_an_error_not_a_number():
    with pytest.raises(KeyError):
        stats.rows(SAMPLES[:1], PLAN)


def test_ratios_are_of_medians():
    table = stats.rows(SAMPLES, PLAN)
    assert stats.ratio(table, J1, "forebay", "ext4") == 100
    assert {"workload": J1, "system": "forebay", "to": "tmpfs", "ratio": 0.6} in stats.ratios(table)
    assert not any(entry["system"] == entry["to"] for entry in stats.ratios(table))


def test_verdicts():
    table = stats.rows(SAMPLES, PLAN)
    verdicts = stats.verdicts(table, (Target(J1, "ext4", 80), Target(J1, "tmpfs", 0.61), Target(J1, "xfs", 1)))
    assert [(verdict["to"], verdict["ok"]) for verdict in verdicts] == [("ext4", True), ("tmpfs", False)]


def test_of_times_less_is_better():
    table = stats.rows(SAMPLES + [event("tmpfs", 1, sync_p50_us=6000)], PLAN)
    verdicts = stats.verdicts(table, (Target(J1, "tmpfs", 1.9, "ext4", figure="sync_p50_us"),
                                      Target(J1, "ext4", 1, "tmpfs", figure="sync_p50_us"),
                                      Target(J1, "ext4", 1, "forebay", figure="sync_p50_us")))
    assert [(verdict["ratio"], verdict["ok"]) for verdict in verdicts] == [(2, True), (0.5, False)]


def test_each_system_leads_a_round():
    systems = ["a", "b", "c"]
    assert [rotated(systems, number)[0] for number in range(4)] == ["a", "b", "c", "a"]
    assert sorted(rotated(systems, 2)) == systems


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_name_what_there_is(name):
    experiment = EXPERIMENTS[name]
    assert set(experiment.workloads) <= set(WORKLOADS) and set(experiment.systems) <= set(SYSTEMS)
    for target in experiment.targets:
        assert target.workload in experiment.workloads
        assert {target.of, target.to} <= set(experiment.systems)


def test_repeats_are_taken_at_their_word():
    plan = Experiment("", (J1,), ("ext4",)).plan(rounds=9)
    assert plan["rounds"] == plan["least_rounds"] == 9
    assert Experiment("", (J1,), ("ext4",)).plan(full=True)["systems"] == [s for s in SYSTEMS if s not in BARE]
    assert Experiment("", (J1,), BARE[:2]).plan(full=True)["systems"] == list(BARE[:2])

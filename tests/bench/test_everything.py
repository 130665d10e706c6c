# SPDX-License-Identifier: GPL-2.0-only
"""`bench/run all` runs what has no results, says how long it takes, and continues after a failure."""

import subprocess

import pytest

from bench import everything
from bench.boot import BenchFailed
from bench.experiments import EXPERIMENTS
from vm.settings import CHECKOUT


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke_size(name):
    experiment = EXPERIMENTS[name]
    plan = everything.plan(experiment)
    assert plan["rounds"] == plan["least_rounds"] == 1 and plan["seconds"] <= 1
    assert plan["systems"] == list(experiment.systems)
    assert 0 < len(plan["workloads"]) <= 3
    assert (plan["workloads"][0], plan["workloads"][-1]) == (experiment.workloads[0], experiment.workloads[-1])
    assert len(set(plan["workloads"])) == len(plan["workloads"])


def test_what_failed_or_was_stopped_is_run_again(tmp_path, capsys):
    begun = []

    def measure(name, plan, folder):
        begun.append(name)
        if name == stops_at:
            raise problem
        folder.mkdir(parents=True)
        (folder / "results.json").touch()
    names = list(EXPERIMENTS)
    stops_at, problem = names[2], KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        everything.run(measure, tmp_path)
    assert begun == names[:3]
    begun.clear()
    problem = BenchFailed("no machine")
    assert everything.run(measure, tmp_path) == [names[2]]
    assert begun == names[2:]
    begun.clear()
    stops_at = ""
    assert everything.run(measure, tmp_path) == [] and begun == [names[2]]
    said = capsys.readouterr().err
    assert "failed: no machine" in said and "points, some 0 min left" in said
    assert f"1 of {len(names)} experiments have no results" in said


def test_time_left():
    assert everything.left(0, 0, 100) == ""
    assert everything.left(120, 25, 100) == ": 25 of 100 points, some 6 min left"


def test_all_takes_no_options_of_an_experiment():
    done = subprocess.run([CHECKOUT / "bench/run", "all", "--repeats", "2"], capture_output=True, text=True)
    assert done.returncode == 2 and "--smp and --cpu only" in done.stderr

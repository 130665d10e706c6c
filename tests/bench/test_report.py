# SPDX-License-Identifier: GPL-2.0-only
"""The report says what results show, and no more."""

import json
import re
import subprocess
from html.parser import HTMLParser

import pytest

from bench.experiments import EXPERIMENTS
from bench.report import found, make, page
from bench.report.questions import OWN, QUESTIONS, Compare, Question, Reading
from bench.systems import SYSTEMS
from bench.workloads import WORKLOADS


def row(system, *runs, workload="redis-set-c1", **others):
    value = sorted(runs)[len(runs) // 2]
    return {"workload": workload, "system": system, "metric": "ops/s", "value": value, "spread": [min(runs), max(runs)],
            "runs": list(runs)} | others


def results(*rows, experiment="demo", load=0.5, host=None, **settings):
    made = {"experiment": experiment, "began": "2026-11-24T00:00:00Z", "rows": list(rows), "versions": {"kernel": "6.12"},
            "settings": {"smp": 2, "rounds": len(rows[0]["runs"]), "host": {"load": load, "cpus": 2, "accelerator": "tcg"}} | settings}
    return made | ({"host": host} if host else {})


def saved(folder, **by_name):
    for name, made in by_name.items():
        (folder / f"{name.replace('_', '-')}.json").write_text(json.dumps(made))
    return found.load(folder)


QUIET = {"load": [0.3, 1.9], "load_limit": 2, "other_qemus": [0, 0], "others_busy": 0.1, "others_limit": 0.25, "quiet": True}
VERSUS = Compare("forebay", "ext4", ("redis-set-c1",), "4.1 ×")
ASKED = Question(OWN, "demo", "What is gained?", "demo", (VERSUS,), why="It is a test.")


@pytest.mark.parametrize("rounds, host, load, said", [
    (3, QUIET, 0.3, "measured, quiet host"), (2, QUIET, 0.3, "two rounds, quiet host"), (1, QUIET, 0.3, "one round, quiet host"),
    (3, None, 0.5, "measured; load 0.5 before, not known after"),
    (3, None, 2.5, "measured, busy host (load 2.5 before the run, more than 2)"),
    (1, QUIET | {"other_qemus": [1, 0], "quiet": False}, 0.3, "one round, busy host (1 other QEMU processes)"),
])
def test_the_status_of_a_run(tmp_path, rounds, host, load, said):
    made = saved(tmp_path, demo=results(row("ext4", *range(10, 10 + rounds)), host=host, load=load))
    assert found.status(made["demo"][0]) == said
    assert found.status(None) == "not measured"


def test_a_loss_comes_first_with_its_reason(tmp_path):
    made = saved(tmp_path, demo=results(row("ext4", 90, 100, 110), row("forebay", 70, 80, 85), host=QUIET))
    (loss,) = found.losses((ASKED,), made)
    assert (loss.points[0].ratio, loss.points[0].clear, loss.of) == (0.8, True, 1)
    text = page.markdown(page.blocks((ASKED,), made, {"demo": tmp_path / "demo.png"}), tmp_path)
    assert text.index("## Losses") < text.index("forebay: 0.8 × ext4") < text.index("## What was measured") < text.index("## Forebay's own")
    assert "| It is a test. |" in text
    assert "**Found:** forebay is at 0.8 × of ext4: behind." in text
    assert "| forebay / ext4 | 4.1 × | 0.8 × | 1 behind | runs don't overlap |" in text


def test_within_the_margin_is_neither_and_peers_are_no_loss(tmp_path):
    made = saved(tmp_path, demo=results(row("ext4", 100, 100, 101), row("forebay", 96, 97, 120), row("xfs", 10, 10, 10)))
    peers = Question(OWN, "peers", "", "demo", (Compare("xfs", "ext4", ("redis-set-c1",), peers=True),))
    assert found.losses((ASKED, peers), made) == []
    (point,) = found.points(VERSUS, made["demo"][0].rows)
    assert (point.says(), point.clear) == ("level", False)


def test_of_times_less_is_better(tmp_path):
    made = saved(tmp_path, demo=results(row("ext4", 1, mean_us=30), row("forebay", 1, mean_us=10)))
    (point,) = found.points(Compare("forebay", "ext4", ("redis-set-c1",), figure="mean_us"), made["demo"][0].rows)
    assert (point.ratio, point.clear) == (3, None)


def test_what_has_no_results_says_so(tmp_path):
    made = saved(tmp_path, demo=results(row("ext4", 1), row("tmpfs", 1)))
    said = page.markdown(page.blocks((ASKED,), made, {}), tmp_path)
    assert "**Not measured.** `bench/run demo` answers; its results are not here." in said
    assert "1 have no result" in said


def test_void_rows_are_left_out(tmp_path):
    old = results(row("ext4", 1, 2, workload="rocksdb-fillsync-t8"), row("ext4", 5, 6), experiment="writelog-databases")
    old["began"] = "2026-11-22T05:15:04Z"
    made = saved(tmp_path, old=old)["writelog-databases"][0]
    assert [row["workload"] for row in made.rows] == ["redis-set-c1"]
    assert "db_bench" in made.void[0]
    old["began"] = "2026-11-24T00:00:00Z"
    assert len(saved(tmp_path, old=old)["writelog-databases"][0].rows) == 2


def test_two_runs_of_one_experiment(tmp_path):
    made = saved(tmp_path, demo=results(row("ext4", 90, 100, 110), row("tmpfs", 5, 5, 5), row("xfs", 1, 1, 1)),
                 demo_again=results(row("ext4", 105, 120, 130), row("tmpfs", 10, 10, 10)), demo_smp4=results(row("ext4", 1), smp=4))
    runs = made["demo"]
    assert len(runs[0].rows) == 3
    again, other = found.agreement(runs)
    assert again == ("Run again (demo-again): 2 points in common, 100 % apart in the middle, 100 % at most; the spreads of 1 overlap.")
    assert other == "Not compared (demo-smp4): another machine (smp)."
    assert found.spread(runs[0]) == "the runs of a point lie 0 % apart in the middle of all points, 20 % at most"
    assert found.spread(runs[-1]) == "one round: no spread"


def test_results_of_a_folder_each(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/results.json").write_text(json.dumps(results(row("ext4", 1))))
    assert found.load(tmp_path)["demo"][0].name == "demo"


class Looks(HTMLParser):
    """What a page loads from elsewhere."""

    def __init__(self):
        super().__init__()
        self.loaded, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:image/png;base64,")]


def test_the_page_is_one_file(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    saved(folder, demo=results(row("ext4", 90, 100), row("forebay", 300, 400), host=QUIET))
    path = make.make(folder, tmp_path / "build", tmp_path)
    looks = Looks()
    looks.feed(path.read_text())
    assert looks.loaded == [] and "img" in looks.tags and "table" in looks.tags
    assert not (tmp_path / "report.md").exists()            # that is for the results that git knows
    assert "charts/demo.png" in (tmp_path / "build/report.md").read_text()


def test_a_folder_without_results(tmp_path, capsys):
    assert make.main(str(tmp_path)) == 1
    assert "no results" in capsys.readouterr().err


def test_text_of_others_is_no_markup():
    assert page.inline("a < b, `c & d`, **e**") == "a &lt; b, <code>c &amp; d</code>, <b>e</b>"


def test_our_report_is_what_our_results_say():
    """docs/report.md is made by `bench/run report`, and made again when results or questions change."""
    ours = found.load(make.OURS)
    assert (make.OURS.parent / "report.md").read_text() == page.markdown(make.blocks(ours, make.OURS), make.OURS.parent)


def test_every_experiment_has_a_question_and_every_question_an_answer_or_a_reason():
    assert {question.experiment for question in QUESTIONS} - {""} == set(EXPERIMENTS)
    for question in QUESTIONS:
        assert question.asks and (question.experiment or question.why), question
        assert not question.experiment or question.compare or question.readings, question


@pytest.mark.parametrize("question", [question for question in QUESTIONS if question.experiment], ids=lambda question: question.caption)
def test_questions_ask_for_what_their_experiment_measures(question):
    experiment = EXPERIMENTS[question.experiment]
    for compare in question.compare:
        assert set(compare.workloads) <= set(experiment.workloads), compare
        assert {name for pair in compare.pairs() for name in pair} <= set(experiment.systems) & set(SYSTEMS), compare
    for reading in question.readings:
        assert isinstance(reading, Reading) and reading.workload in WORKLOADS and reading.system in experiment.systems


def test_sentences_are_ours_and_short():
    """House rules: no question as an answer, at most 25 words a sentence."""
    for question in QUESTIONS:
        for sentence in re.split(r"(?<=[.;:]) ", question.why):
            assert len(sentence.split()) <= 25, sentence


def test_a_folder_is_for_the_report_alone():
    done = subprocess.run([make.CHECKOUT / "bench/run", "demo", "build"], capture_output=True, text=True)
    assert done.returncode == 2 and "FOLDER is for report" in done.stderr

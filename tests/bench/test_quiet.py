# SPDX-License-Identifier: GPL-2.0-only
"""When a run may be called quiet."""

import io

import pytest
from rich.console import Console

from bench import quiet, table
from bench.quiet import Look


def looks(load=0.5, qemus=(0, 0), busy=110.0, ours=105.0):
    """A run of 100 s, in which the host worked for `busy` processor seconds, `ours` of them for the guest."""
    return Look(load, qemus[0], 1000, 5000, 10), Look(1.9, qemus[1], 1100, 5000 + busy, 10 + ours)


def test_a_quiet_run_says_what_was_measured():
    assert quiet.verdict(*looks(), 2) == {
        "load": [0.5, 1.9], "load_limit": 2.0, "other_qemus": [0, 0], "others_busy": 0.05, "others_limit": 0.25, "quiet": True}


@pytest.mark.parametrize("host, problem", [
    (looks(load=2.1), "load 2.1 before"), (looks(qemus=(1, 0)), "1 other QEMU"), (looks(qemus=(0, 2)), "2 other QEMU"),
    (looks(busy=180.0), "0.75 processors"),
])
def test_each_limit_makes_a_host_busy(host, problem):
    found = quiet.verdict(*host, 2)
    assert found["quiet"] is False
    assert [problem in said for said in quiet.problems(found)] == [True]


def test_the_load_of_the_guest_itself_is_no_problem():
    before, after = looks()
    assert quiet.verdict(before, Look(4.0, 0, after.at, after.busy, after.ours), 2)["quiet"]


def test_results_without_a_look_at_the_end_are_not_called_quiet():
    old = {"settings": {"host": {"cpus": 2, "load": 1.25}}}
    assert quiet.of(old)["quiet"] is None
    old["settings"]["host"]["load"] = 2.57
    assert quiet.of(old)["quiet"] is False


def test_what_proc_says(tmp_path):
    (tmp_path / "stat").write_text("cpu  100 10 200 5000 70 3 7 900 0 0\ncpu0 1 1\n")
    for pid, name in (("7", "qemu-system-x86\n"), ("8", "python3\n")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "comm").write_text(name)
    (tmp_path / "self").mkdir()
    seen = quiet.look(tmp_path)
    assert seen.qemus == 1
    assert seen.busy * quiet.os.sysconf("SC_CLK_TCK") == 320


def test_the_table_says_busy_host(monkeypatch):
    results = {"rows": [], "ratios": [], "targets": [], "versions": {"kernel": "6.12"},
               "settings": {"rounds": 3, "host": {"accelerator": "tcg"}}, "host": quiet.verdict(*looks(qemus=(1, 1)), 2)}

    def shown():
        said = io.StringIO()
        monkeypatch.setattr(table, "Console", lambda **options: Console(file=said, width=110))
        table.show(results)
        return said.getvalue()
    assert "busy host: 1 other QEMU" in shown()
    results["host"] = quiet.verdict(*looks(), 2)
    assert "busy" not in shown()

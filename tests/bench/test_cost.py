# SPDX-License-Identifier: GPL-2.0-only
"""What a workload costs: counted within its own time, an operation each."""

import json
import time

import pytest

from bench import cost, table
from bench.commands import CommandFailed
from bench.report import page
from bench.workloads import fio, ranges


@pytest.fixture
def totals(monkeypatch):
    """The machine's totals, as look() would find them one after the other."""
    def give(*looks):
        left = list(looks)
        monkeypatch.setattr(cost, "look", lambda: left.pop(0))
    return give


def test_an_operations_part(totals):
    totals({"cpu_us": 100.0, "switches": 10, "ssd_bytes": 0, "pmem_bytes": 0}, {"cpu_us": 300.0, "switches": 30, "ssd_bytes": 0, "pmem_bytes": 0})
    with cost.Spent() as spent:
        pass
    assert spent.each(10) == {"cost_cpu_us": 20, "cost_switches": 2, "cost_ssd_bytes": 0}, "DAX: no bytes of PMem are known"
    assert spent.each(0) == {}


def test_several_times(totals):
    totals({"ssd_bytes": 0}, {"ssd_bytes": 512}, {"ssd_bytes": 4096}, {"ssd_bytes": 4608})
    spent = cost.Spent()
    for _ in range(2):
        with spent:
            pass
    assert spent.each(4) == {"cost_ssd_bytes": 256}


def test_a_counter_that_was_set_back_says_nothing(totals):
    totals({"energy_uj": 9000, "cpu_us": 1.0}, {"energy_uj": 10, "cpu_us": 2.0})
    with cost.Spent() as spent:
        pass
    assert spent.each(1) == {"cost_cpu_us": 1}


def test_this_machine(monkeypatch):
    monkeypatch.setattr(cost.systems, "SSD", "/dev/nothing")
    monkeypatch.setattr(cost.systems, "PMEM", "/dev/nothing")
    with cost.Spent() as spent:
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
    assert 150_000 < spent.each(1)["cost_cpu_us"] < 1e6 * spent.seconds * 64
    assert "cost_ssd_bytes" not in spent.each(1)


def planted(tmp_path, monkeypatch, script):
    """A program called fio that comes first."""
    program = tmp_path / "bin/fio"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_a_timed_run_of_fio(tmp_path, monkeypatch, totals):
    report = {"jobs": [{"error": 0, "write": {"iops": 500}, "read": {"iops": 0}}]}
    planted(tmp_path, monkeypatch, f"sleep 1.3\necho 'a note' >&2\ncat <<'end'\n{json.dumps(report, indent=1)}\nend\n")
    totals({"cpu_us": 0.0}, {"cpu_us": 1e6})
    found = fio.report_of("--rw=randwrite", seconds=0.5, begin=0.5)
    # Half a second at 500/s.
    assert found["cost"]["cost_cpu_us"] == pytest.approx(4000, rel=0.3)
    assert fio.report_of("--size=1m")["cost"] == {}, "a run of a given size: its start is part of it"


def test_fio_that_fails(tmp_path, monkeypatch):
    planted(tmp_path, monkeypatch, "echo 'no such file' >&2\nexit 1\n")
    with pytest.raises(CommandFailed, match="no such file"):
        fio.report_of(seconds=0.1)


def test_what_comes_before_the_first_line_is_not_counted(totals):
    totals({"cpu_us": 0.0}, {"cpu_us": 1e6})
    said, spent = ranges.from_first_line("sh", "-c", "sleep 0.5; echo MAP_SYNC; sleep 0.1; echo 5")
    assert said == "MAP_SYNC\n5\n" and 0.05 < spent.seconds < 0.45
    with pytest.raises(CommandFailed, match="status 3"):
        totals({}, {})
        ranges.from_first_line("sh", "-c", "exit 3")


ROWS = [{"workload": "append-fdatasync", "system": system, "metric": "ops/s", "value": 5, "spread": [4, 6], **figures}
        for system, figures in (("ext4", {"cost_cpu_us": 1234.5, "cost_switches": 2.5, "cost_ssd_bytes": 8192}), ("tmpfs", {}))]


def test_costs_are_shown():
    assert page.costs([ROWS[1]]) == []
    text, block = page.costs(ROWS)
    assert block.heads == ("", "ext4") and block.rows == [("`append-fdatasync`", "1,234 µs, 2.5 switches, 8 KiB")]
    (shown,) = table.tables({"rows": ROWS, "ratios": []})
    assert [column.header for column in shown.columns][-1] == "CPU µs/op" and list(shown.columns[-1].cells) == ["1,234", ""]

# SPDX-License-Identifier: GPL-2.0-only
"""Figures that README.md and docs/benchmarks.md take from docs/results are those of the JSON there."""

import json
import re
import statistics

import pytest

from vm.settings import CHECKOUT

README = " ".join((CHECKOUT / "README.md").read_text(encoding="utf-8").split())
BENCHMARKS = (CHECKOUT / "docs/benchmarks.md").read_text(encoding="utf-8")
DEMO = {"Redis SET, `appendfsync always`, 1 client": "redis-set-c1", "the same, 50 clients": "redis-set-c50",
        "4 KiB random write + `fdatasync`, 1 job": "fio-fdatasync-j1", "the same, 2 jobs": "fio-fdatasync-j2"}
RATIO = r"([\d.]+)"


def results(name):
    return json.loads((CHECKOUT / f"docs/results/{name}.json").read_text())


def rows(name):
    return {(row["workload"], row["system"]): row for row in results(name)["rows"]}


def table(text, first):
    """The cells of the lines whose first cell is one of these."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [cells for cells in lines if cells[0] in first]


def said(pattern):
    """The figures in a sentence of the README."""
    match = re.search(pattern, README)
    assert match, f"README.md doesn't say '{pattern}'"
    return [float(figure.replace(",", "")) for figure in match.groups()]


def test_the_demo():
    """Its table, its rounds and load, and its power cut."""
    demo, found = results("demo"), rows("demo")
    shown = table((CHECKOUT / "README.md").read_text(encoding="utf-8"), DEMO)
    assert [cells[0] for cells in shown] == list(DEMO)
    for cells in shown:
        base, *others = (found[DEMO[cells[0]], system]["value"] for system in ("ext4", "dm-writecache", "forebay", "tmpfs"))
        assert [cell.strip("*") for cell in cells[1:]] == [f"{base:,.0f}"] + [f"{value:,.0f} ({value / base:.1f} ×)" for value in others]
    assert said(r"median of (\d) rounds\. The host's load before it was ([\d.]+)") == [demo["settings"]["rounds"], demo["settings"]["host"]["load"]]
    assert "host" not in demo, "the load after it is known, and README.md says that it is not"
    assert said(r"([\d,]+) SETs had been acknowledged, (\d+) were lost") == [demo["power_cut"]["acknowledged"], demo["power_cut"]["lost"]]


def test_the_name_log():
    found = rows("names")
    gains = {workload: found[workload, "forebay-names"]["value"] / row["value"] for (workload, system), row in found.items() if system == "ext4"}
    sqlite = [gain for workload, gain in gains.items() if "sqlite" in workload]
    assert said(f"here {RATIO} × ext4 for a new file and its `fsync`, {RATIO} × for a replacement, {RATIO} to {RATIO} × for SQLite") == [
        float(f"{gain:.2g}") for gain in (gains["names-create"], gains["names-replace"], min(sqlite), max(sqlite))]


def test_a_tree_of_files():
    found = rows("no-tax")
    longer = [round(100 * (found["untar", "ext4"]["value"] / found["untar", system]["value"] - 1)) for system in ("forebay", "overlayfs")]
    assert said(r"takes about (\d+) % longer than on ext4 \(overlayfs: (\d+) %") == longer


def test_the_transit_cache():
    """One job: with a second processor for the workers, and on a machine with one."""
    def ratios(name, workloads):
        found = rows(name)
        return [found[workload, "transit"]["value"] / found[workload, "ext4-btt"]["value"] for workload, system in found
                if system == "transit" and re.fullmatch(workloads, workload)]
    beside = [ratio for name in ("transit-depth", "transit-smp2", "transit-smp4", "transit-breakdown") for ratio in ratios(name, r"depth-\d+|breakdown")]
    beside += ratios("transit-jobs", "jobs-1")
    alone = ratios("transit-smp1", r"depth-\d+")
    least, largest, without = said(f"made {RATIO} to {RATIO} × the BTT below it where a processor was free .*?, and {RATIO} × where none")
    assert (least, largest) == (round(min(beside), 2), round(max(beside), 2))
    assert {round(ratio, 2) for ratio in alone} == {without}


def test_no_power_cuts_are_counted():
    """docs/results keeps none but the demo's."""
    assert not re.findall(r"[\d,]+ power cuts|thousands on emulated", README)


@pytest.mark.parametrize("name", ["append", "sync", "no-tax"])
def test_what_was_measured(name):
    """The rows of the table that name a JSON: median, least and largest, ratio."""
    shown = [line for line in BENCHMARKS.splitlines() if f"| [{name}](results/{name}.json) |" in line]
    assert shown
    found = rows(name)
    for line in shown:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        ours, base = (found[cells[0].split("`")[1], system] for system in ("forebay", "ext4"))
        assert cells[2:4] == [f"{row['value']:,.0f} ({row['spread'][0]:,.0f} to {row['spread'][1]:,.0f})" for row in (ours, base)]
        ratio = re.match(RATIO, cells[4])[1]
        assert ratio == f"{ours['value'] / base['value']:.{len(ratio.partition('.')[2])}f}"


def test_sustained_writes():
    """Of the write log, dm-writecache and the SSD; in hundreds a second."""
    found = rows("writelog-sustained")
    blocks = [f"{found['bare-sustained', system]['value'] * 256:,.0f}" for system in ("small-writelog", "small-dm-writecache", "bare-ssd")]
    match = re.search(r"\*\*Sustained\.\*\* The log took ([\d,]+) writes of 4 KiB a second, dm-writecache ([\d,]+), and the SSD alone\s([\d,]+)\.", BENCHMARKS)
    assert match
    assert [f"{round(int(block.replace(',', '')), -2):,}" for block in blocks] == list(match.groups())


def test_several_machines():
    """docs/scale-out.md's table is that of docs/results/cluster/rates.json."""
    lines = []
    for name, found in results("cluster/rates").items():
        middle = {system: [statistics.median(one[key] for one in rounds) for key in ("rate", "p50_ms", "p99_ms")]
                  for system, rounds in found["systems"].items()}
        base = next(iter(middle.values()))[0]
        for system, (rate, p50, p99) in middle.items():
            rates = [one["rate"] for one in found["systems"][system]]
            assert len(rates) >= 3
            lines.append(f"| {name} | {system} | {rate:.0f} ({min(rates):.0f} to {max(rates):.0f}) | {p50:g} | {p99:g} | {rate / base:.2f} |")
    page = (CHECKOUT / "docs/scale-out.md").read_text()
    assert [line for line in page.splitlines() if line.startswith(("| etcd | ext4", "| etcd | f", "| etcd | w", "| drbd |", "| nvme |"))] == lines

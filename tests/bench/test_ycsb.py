# SPDX-License-Identifier: GPL-2.0-only
"""What YCSB's client says, which ends with status 0 even if nothing worked."""

import pytest

from bench.commands import CommandFailed
from bench.workloads import ycsb

# Of workload F, as it was printed; some percentiles and collections of garbage left out.
F = """\
[OVERALL], RunTime(ms), 280
[OVERALL], Throughput(ops/sec), 3571.4285714285716
[TOTAL_GC_TIME_%_Copy], Time(%), 0.0
[READ], Operations, 1000
[READ], AverageLatency(us), 85.346
[READ], 99thPercentileLatency(us), 1420
[READ], Return=OK, 1000
[READ-MODIFY-WRITE], Operations, 501
[READ-MODIFY-WRITE], AverageLatency(us), 213.10978043912175
[READ-MODIFY-WRITE], 99thPercentileLatency(us), 4527
[CLEANUP], Operations, 1
[CLEANUP], AverageLatency(us), 7166.0
[CLEANUP], 99thPercentileLatency(us), 7167
[UPDATE], Operations, 501
[UPDATE], AverageLatency(us), 103.68862275449102
[UPDATE], 99thPercentileLatency(us), 3215
[UPDATE], Return=OK, 501
"""
# Of workload A on an empty database.
NOTHING_FOUND = """\
[OVERALL], Throughput(ops/sec), 1449.2753623188405
[UPDATE-FAILED], Operations, 45
[READ], Operations, 0
[READ], AverageLatency(us), NaN
[READ], Return=NOT_FOUND, 55
[UPDATE], Operations, 0
[UPDATE], Return=NOT_FOUND, 45
[READ-FAILED], Operations, 55
"""
# In a folder that is not there.
NOT_OPENED = "[OVERALL], RunTime(ms), 54\n[OVERALL], Throughput(ops/sec), 0.0\n"


def test_figures():
    found = ycsb.parse(F)
    ycsb.check(found, ycsb.COUNTED["f"], 1000)
    assert ycsb.figures(found) == {
        "value": 3571.4285714285716, "read_mean_us": 85.3, "read_p99_us": 1420, "update_mean_us": 103.7, "update_p99_us": 3215,
        "read_modify_write_mean_us": 213.1, "read_modify_write_p99_us": 4527}


def test_some_must_have_been_updates():
    read_only = "\n".join(line for line in F.splitlines() if "[UPDATE]" not in line)
    ycsb.check(ycsb.parse(read_only), ycsb.COUNTED["f"], 1000)
    with pytest.raises(CommandFailed, match="some operations, UPDATE"):
        ycsb.check(ycsb.parse(read_only), ("UPDATE",), None)


def test_all_transactions_must_have_been_done():
    with pytest.raises(CommandFailed, match="to do 1001"):
        ycsb.check(ycsb.parse(F), ycsb.COUNTED["f"], 1001)


@pytest.mark.parametrize("returned", ["[READ], Return=ERROR, 1", "[UPDATE], Return=NOT_FOUND, 1", "[VERIFY], Return=UNEXPECTED_STATE, 1"])
def test_one_failure_is_no_result(returned):
    with pytest.raises(CommandFailed, match=returned.split("=")[1].partition(",")[0]):
        ycsb.check(ycsb.parse(f"{F}{returned}\n"), ycsb.COUNTED["f"], 1000)


@pytest.mark.parametrize("output", [NOTHING_FOUND, NOT_OPENED, ""])
def test_no_success_is_no_result(output):
    with pytest.raises(CommandFailed):
        ycsb.check(ycsb.parse(output), ycsb.COUNTED["a"], 100)


def test_what_is_asked_for(monkeypatch):
    said = []

    def run(*argv):
        said.append(argv)
        return f"[READ], Return=OK, {ycsb.OPERATIONS - 1}\n[UPDATE], Return=OK, 1\n"
    monkeypatch.setattr(ycsb, "run", run)
    ycsb.client("/db", "a", requestdistribution="latest")
    assert {"-t", "requestdistribution=latest", "rocksdb.dir=/db", "readproportion=0.5", "updateproportion=0.5"} <= set(said[0])
    with pytest.raises(CommandFailed):
        ycsb.client("/db", "load")
    assert "-load" in said[1]

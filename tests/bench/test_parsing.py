# SPDX-License-Identifier: GPL-2.0-only
"""What fio, Redis, the transit cache and the pulled plug's clients say."""

import io
import json

import pytest

from bench import resp
from bench.redis_cut_values import key, value
from bench.commands import CommandFailed
from bench.workloads import append_log, block, fio, mariadb, redis, transit

FIO = {"jobs": [{"error": 0, "write": {"iops": 317.5}, "sync": {"lat_ns": {
    "mean": 2961000.0, "percentile": {"50.000000": 2900000, "99.000000": 9100000}}}}]}


def test_fio_may_speak_before_its_json():
    job = fio.parse("note: both iodepth >= 1 and synchronous I/O engine\n" + json.dumps(FIO, indent=1))
    assert job["write"]["iops"] == 317.5
    assert fio.latencies(job["sync"]) == {"sync_mean_us": 2961.0, "sync_p50_us": 2900.0, "sync_p99_us": 9100.0}


def test_fio_with_an_error_is_no_result():
    failed = json.loads(json.dumps(FIO))
    failed["jobs"][0]["error"] = 28
    with pytest.raises(ValueError):
        fio.parse(json.dumps(failed, indent=1))


def test_fio_that_did_nothing_is_no_result():
    idle = json.loads(json.dumps(FIO))
    idle["jobs"][0]["write"]["iops"] = 0
    with pytest.raises(ValueError):
        fio.parse(json.dumps(idle, indent=1))


def test_fio_did_the_bytes_it_was_asked_for():
    fio.check_bytes({"io_bytes": 4096}, 4096)
    with pytest.raises(ValueError):
        fio.check_bytes({"io_bytes": 0}, 4096)


@pytest.mark.parametrize("syncs, writes, each, good", [(1000, 1001, 1, True), (0, 10, 1, False), (500, 1001, 1, False),
                                                       (2, 256, 128, True), (0, 256, 128, False), (10, 12800, 128, False)])
def test_fio_synced_what_it_wrote(syncs, writes, each, good):
    report = {"write": {"total_ios": writes}, "sync": {"lat_ns": {"N": syncs}}}
    if good:
        fio.check_syncs(report, each)
    else:
        with pytest.raises(ValueError):
            fio.check_syncs(report, each)


FILLSYNC = "DB path: [/db]\nfillsync     :    4082.773 micros/op 1888 ops/sec 1.059 seconds 2000 operations;    0.2 MB/s (2000 ops)\n"


def test_db_bench_did_the_operations_it_was_asked_for():
    assert block.parse_db_bench(FILLSYNC, "fillsync", 2000) == 1888
    for output in ("fillsync     :  102474.000 micros/op 38 ops/sec 0.026 seconds 1 operations; (0 ops)\n", "DB path: [/db]\n", ""):
        with pytest.raises(CommandFailed):
            block.parse_db_bench(output, "fillsync", 2000)


def test_db_bench_found_the_keys_that_it_read():
    line = "readrandom   :      12.345 micros/op 81000 ops/sec 0.247 seconds 20000 operations;   49.9 MB/s ({} of 20000 found)\n"
    assert block.parse_db_bench(line.format(12642), "readrandom", 20000) == 81000
    with pytest.raises(CommandFailed, match="found no key"):
        block.parse_db_bench(line.format(0), "readrandom", 20000)


SYSBENCH = """Number of threads: {}
    transactions:                        {}   (46.59 per sec.)
    ignored errors:                      {}      (0.00 per sec.)
    total time:                          {}s
"""


def test_sysbench_did_something_without_errors():
    assert mariadb.rate(SYSBENCH.format(8, 97, 0, 2.0821), 8, 2) == 46.59
    for said in ((8, 0, 0, 2.1), (8, 97, 1, 2.1), (1, 97, 0, 2.1), (8, 97, 0, 1.2)):
        with pytest.raises(CommandFailed):
            mariadb.rate(SYSBENCH.format(*said), 8, 2)


def test_latencies_of_a_job_that_never_synced():
    assert fio.latencies({}) == {}


def test_calls_of_set():
    info = "# Commandstats\r\ncmdstat_ping:calls=2,usec=9\r\ncmdstat_set:calls=4711,usec=99,usec_per_call=0.02\r\n"
    assert redis.parse_calls(info) == 4711
    assert redis.parse_calls("# Commandstats\r\n") == 0


def test_resp_words_may_hold_anything():
    assert resp.encode("SET", b"k\r\n", 1) == b"*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$1\r\n1\r\n"


@pytest.mark.parametrize("text, reply", [
    (b"+OK\r\n", b"OK"), (b":42\r\n", 42), (b"$5\r\na\r\nbc\r\n", b"a\r\nbc"), (b"$-1\r\n", None),
    (b"*2\r\n$1\r\nx\r\n$-1\r\n", [b"x", None]),
])
def test_resp_replies(text, reply):
    assert resp.decode(io.BytesIO(text)) == reply


def test_resp_errors_and_ends():
    with pytest.raises(resp.ErrorReply):
        resp.decode(io.BytesIO(b"-LOADING\r\n"))
    with pytest.raises(ConnectionError):
        resp.decode(io.BytesIO(b"+O"))


def test_values_are_told_apart():
    assert len({value(number) for number in range(1, 5000)}) == 4999
    assert len({len(value(number)) for number in range(1000, 1013)}) == 13
    assert key(12) == b"key:12"


def test_phases_of_the_transit_cache():
    shown = "metadata 3000 <512:2 <2048:1\nevict_and_write\neviction 9 <16:1\n"
    assert transit.parse_phases(shown) == {"metadata": (3000, 3), "evict_and_write": (0, 0), "eviction": (9, 1)}


TIMES = """Latency by percentile distribution:
0.000% <= 0.023 milliseconds (cumulative count 10810)
75.000% <= 0.031 milliseconds (cumulative count 17960)
99.219% <= 1.207 milliseconds (cumulative count 19850)
100.000% <= 6.319 milliseconds (cumulative count 20000)

Cumulative distribution of latencies:
94.800% <= 0.103 milliseconds (cumulative count 18960)
"""


def test_response_times():
    times = append_log.parse_times("\r" + TIMES)
    assert times == {"0": 23, "75": 31, "99.219": 1207, "100": 6319}
    assert append_log.figures(times) == {"p50_us": 31, "p99_us": 1207, "p999_us": 6319, "max_us": 6319}
    for said in ("", TIMES.partition("Cumulative")[0], TIMES.replace("100.000%", "99.9%")):
        with pytest.raises(RuntimeError, match="no response times"):
            append_log.parse_times(said)

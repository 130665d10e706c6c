# SPDX-License-Identifier: GPL-2.0-only
"""What fio, Redis, the transit cache and the pulled plug's clients say."""

import io
import json

import pytest

from bench import resp
from bench.redis_cut_values import key, value
from bench.workloads import fio, redis, transit

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

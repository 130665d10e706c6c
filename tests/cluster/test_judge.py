# SPDX-License-Identifier: GPL-2.0-only
"""The judge accepts what a register may answer and rejects what it may not: lost writes, stale reads, torn compare-and-swaps."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from cluster.history import History, Operation      # noqa: E402
from cluster.judge import violations                # noqa: E402

UNKNOWN = None


def put(value, call, end, key="k"):
    return Operation(0, key, "put", value=value, call=call, return_=end)


def get(found, call, end, key="k"):
    return Operation(1, key, "get", found=found, call=call, return_=end)


def cas(expected, value, call, end, succeeded=True, found=""):
    return Operation(2, "k", "cas", value=value, expected=expected, succeeded=succeeded, found=found, call=call, return_=end)


GOOD = {
    "absent, then written": [get("", 0, 1), put("a", 2, 3), get("a", 4, 5)],
    "reads during a write, in an order": [put("a", 0, 9), get("", 1, 2), get("a", 3, 4)],
    "two writes at once": [put("a", 0, 9), put("b", 0, 9), get("a", 10, 11)],
    "unknown write took effect late": [put("a", 0, 1), put("b", 2, UNKNOWN), get("a", 3, 4), get("b", 5, 6)],
    "unknown write never took effect": [put("a", 0, 1), put("b", 2, UNKNOWN), get("a", 3, 4)],
    "swapped": [put("a", 0, 1), cas("a", "b", 2, 3), get("b", 4, 5)],
    "swap refused": [put("a", 0, 1), cas("x", "b", 2, 3, False, "a"), get("a", 4, 5)],
    "unknown swap took effect": [put("a", 0, 1), cas("a", "b", 2, UNKNOWN), get("b", 4, 5)],
    "each key is a register of its own": [put("a", 0, 1), put("b", 2, 3, "other"), get("a", 4, 5), get("b", 4, 5, "other")],
}

BAD = {
    "acknowledged write lost": [put("a", 0, 1), get("", 2, 3)],
    "acknowledged overwrite lost": [put("a", 0, 1), put("b", 2, 3), get("a", 4, 5)],
    "stale read": [put("a", 0, 1), put("b", 2, UNKNOWN), get("b", 3, 4), get("a", 5, 6)],
    "stale read during a write": [put("a", 0, 1), put("b", 2, 9), get("b", 3, 4), get("a", 5, 6)],
    "read of what was never written": [put("a", 0, 1), get("b", 2, 3)],
    "read before the write": [get("a", 0, 1), put("a", 2, 3)],
    "swapped twice from one value": [put("a", 0, 1), cas("a", "b", 2, 5), cas("a", "c", 2, 5)],
    "swapped from a value that was gone": [put("a", 0, 1), put("b", 2, 3), cas("a", "c", 4, 5)],
    "acknowledged swap lost": [put("a", 0, 1), cas("a", "b", 2, 3), get("a", 4, 5)],
    "swap refused for nothing": [put("a", 0, 1), cas("a", "b", 2, 3, False, "a")],
    "unknown swap from another value": [put("a", 0, 1), cas("x", "b", 2, UNKNOWN), get("b", 4, 5)],
}


def judged(operations):
    return violations([operation.as_json() for operation in operations])


@pytest.mark.parametrize("name", GOOD)
def test_accepts(name):
    assert judged(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_rejects(name):
    assert judged(BAD[name]) == ["k: not linearizable"]


def test_names_the_bad_key_alone():
    assert judged([put("a", 0, 1), get("a", 2, 3), put("b", 0, 1, "other"), get("", 2, 3, "other")]) == ["other: not linearizable"]


def test_an_unknown_history_is_no_verdict():
    with pytest.raises(ValueError):
        violations(['{"kind": "delete", "key": "k"}'])


def test_history_keeps_unknown_writes_and_drops_unknown_reads():
    def broken(_):
        raise OSError

    history = History()
    assert history.carry_out(put("a", 0, UNKNOWN), lambda _: None)
    assert not history.carry_out(put("b", 0, UNKNOWN), broken)
    assert not history.carry_out(get("", 0, UNKNOWN), broken)
    assert (history.acknowledged, history.unknown, len(history.lines())) == (1, 2, 2)
    assert '"return": null' in history.lines()[1]

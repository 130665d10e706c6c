# SPDX-License-Identifier: GPL-2.0-only
"""The ledger accepts what an engine may answer after a failover, and rejects a lost, changed, invented or torn write."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from cluster.ledger import Found, Ledger, value     # noqa: E402


@pytest.fixture
def ledger():
    """Writer 0 has sent three writes, and the third has no answer; writer 1 has sent nothing."""
    made = Ledger(2)
    for number in (1, 2, 3):
        assert made.sends(0) == number
    made.was_acknowledged(0, 1)
    made.was_acknowledged(0, 2)
    assert (made.acknowledged(), made.unknown()) == (2, 1)
    return made


def found(*numbers, counter=None):
    return Found({(0, number): value(0, number) for number in numbers}, {0: max(numbers) if counter is None else counter})


@pytest.mark.parametrize("has", [found(1, 2), found(1, 2, 3)], ids=["without an answer, not there", "without an answer, there"])
def test_accepts(ledger, has):
    assert ledger.violations(has) == []


@pytest.mark.parametrize("has, problem", [
    (found(1), "1 acknowledged rows are lost, the first is 2"),
    (found(2, 3), "1 acknowledged rows are lost, the first is 1"),
    (found(1, 2, 3, 4), "1 rows were never sent, the first is 4"),
    (found(1, 2, counter=1), "the counter says 1, the last row is 2"),
    (found(1, 2, counter=3), "the counter says 3, the last row is 2"),
    (Found({(0, 1): value(0, 1), (0, 2): "x"}, {0: 2}), "1 rows have another value, the first is 2"),
], ids=["last lost", "hole", "invented", "row alone", "counter alone", "changed"])
def test_rejects(ledger, has, problem):
    assert ledger.violations(has) == [f"writer 0: {problem}"]


def test_all_lost(ledger):
    assert ledger.violations(Found()) == ["writer 0: 2 acknowledged rows are lost, the first is 1"]

# SPDX-License-Identifier: GPL-2.0-only
"""The parsing of pjdfstest's output: it must see each kind of failure."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import tap          # noqa: E402


def test_all_well():
    assert tap.failures("1..2\nok 1\nok 2 # TODO some day\n") == {}
    assert tap.count("1..2\nok 1\nok 2\n") == 2


def test_a_failure_and_what_it_says():
    assert tap.failures("1..2\nok 1\nnot ok 2 - tried 'x', expected 0, got EPERM\n") == {2: "tried 'x', expected 0, got EPERM"}


def test_what_is_known_to_fail_is_none():
    assert tap.failures("1..1\nnot ok 1 # TODO known\n") == {}


def test_tests_that_never_came():
    assert tap.failures("1..3\nok 1\n") == {2: "did not come", 3: "did not come"}


def test_a_file_that_died():
    assert tap.failures("", 1) == {0: "exit status 1"}
    assert tap.failures("ok 1\n") == {0: "no plan"}


def test_what_fails_here_alone():
    mine, reference = {"a": {"1": "x", "2": "y"}, "b": {"10": "z", "9": "z"}}, {"a": {"1": "x"}}
    assert tap.alone(mine, reference) == [("a", "2", "y"), ("b", "9", "z"), ("b", "10", "z")]

# SPDX-License-Identifier: GPL-2.0-only
"""The workloads about names notice what was not done."""

import os
import sqlite3

import pytest

from bench import helpers
from bench.workloads import names


@pytest.fixture(scope="module", autouse=True)
def programs_fixture():
    """names.c"""
    helpers.make()


@pytest.mark.parametrize("program", ["create", "maildir", "replace", "wal"])
def test_what_is_done_is_counted_and_checked(tmp_path, program):
    figures = names.steps(program)(str(tmp_path), 0.05)
    assert figures["steps"] >= 5 and figures["value"] > 0
    with pytest.raises(ValueError):
        names.check(str(tmp_path), program, figures["steps"] + 1)
    victim = next(path for path in sorted(tmp_path.rglob("*")) if path.is_file())
    victim.write_bytes(bytes(victim.stat().st_size))
    with pytest.raises(ValueError):
        names.check(str(tmp_path), program, figures["steps"])


def test_a_file_too_many_is_no_result(tmp_path):
    figures = names.steps("maildir")(str(tmp_path), 0)
    (tmp_path / "tmp/left").touch()
    with pytest.raises(ValueError):
        names.check(str(tmp_path), "maildir", figures["steps"])


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist"])
def test_sqlite(tmp_path, mode):
    figures = names.sqlite(mode)(str(tmp_path), 0.05)
    assert figures["steps"] >= 5
    assert os.path.exists(tmp_path / "db-journal") == (mode != "delete")
    with pytest.raises(ValueError):
        names.check_rows(str(tmp_path / "db"), figures["steps"] + 1)
    with sqlite3.connect(tmp_path / "db") as base:
        base.execute("UPDATE t SET value = zeroblob(100) WHERE id = 2")
    with pytest.raises(ValueError):
        names.check_rows(str(tmp_path / "db"), figures["steps"])


def test_sqlite_in_another_mode_is_no_result(tmp_path):
    with pytest.raises(ValueError):
        names.connect(str(tmp_path / "db"), "nonsense")

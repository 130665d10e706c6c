# SPDX-License-Identifier: GPL-2.0-only
"""tests/run: each test file for the guest belongs to a boot, and each name in the table is a file."""

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))      # where the script finds powercut/


@pytest.fixture(name="table", scope="module")
def table_fixture():
    """The script as a module."""
    spec = spec_from_loader("tests_run", SourceFileLoader("tests_run", str(ROOT / "tests/run")))
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_no_file_is_left_out(table):
    named = {path for files, _, _ in table.BOOTS.values() for path in table.test_files(files, None)}
    there = {str(path.relative_to(ROOT)) for folder in ("vm", "attack") for path in (ROOT / "tests" / folder).glob("test_*.py")}
    assert named == there


@pytest.mark.parametrize("options", [["--only", "nmaes"], ["--boot", "boots", "-k", "no_such_test"]])
def test_a_name_that_nothing_has(table, monkeypatch, capsys, options):
    """A slip of the pen is no success."""
    monkeypatch.setattr(table, "build", lambda kernel: None)
    monkeypatch.setattr(table.sys, "argv", ["tests/run", *options])
    assert table.main() == 1
    assert "no test was run" in capsys.readouterr().out


def test_a_boot_that_selects_nothing(table, monkeypatch):
    """It fails, unless files or tests were asked for by name: these may be another boot's."""
    monkeypatch.setattr(table, "command_for", lambda *_: ["sh", "-c", f"exit {table.NOTHING_SELECTED}"])
    for only, extra, status in (None, [], table.NOTHING_SELECTED), (["io"], [], 0), (None, ["-k", "flock"], 0):
        assert table.boot("calls", "stock", only, extra, 60, [], lambda line: None) == (status, {}, [])


def test_a_failed_assertion_in_a_thread_fails_the_test(table, tmp_path):
    """pytest itself only warns. The Makefile says the same as tests/run."""
    (tmp_path / "test_it.py").write_text("import threading\n\n\ndef fails():\n    assert False\n\n\ndef test_it():\n"
                                         "    thread = threading.Thread(target=fails)\n    thread.start()\n    thread.join()\n", encoding="ascii")
    done = subprocess.run([*table.PYTEST, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED and "1 failed" in done.stdout, done.stdout[-2000:]
    assert " ".join(table.THREADS) in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["vm", "attack"])
def test_files_for_the_guest_are_refused_elsewhere(folder):
    """They format /dev/nvme0n1 and /dev/pmem0, and remove all mapped devices."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", f"tests/{folder}"], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "run them with tests/run" in done.stdout, done.stdout[-2000:]


def test_each_name_is_a_file(table):
    for boot, (files, _, _) in table.BOOTS.items():
        for name in files:
            assert table.test_files([name], None), f"{boot} names {name}"

# SPDX-License-Identifier: GPL-2.0-only
"""What scripts/sizes takes for too long."""

import subprocess
from pathlib import Path

import pytest

SIZES = Path(__file__).resolve().parents[2] / "scripts/sizes"


def c_function(lines):
    """A function of so many lines, its head of two lines among them."""
    return "static int f(int a,\n\t     int b)\n{\n" + "\ta++;\n" * (lines - 4) + "}\n"


def python_function(lines):
    return "def f():\n" + "    a()\n" * (lines - 1)


@pytest.mark.parametrize("name,text,said", [
    ("a.c", c_function(60), None),
    ("a.c", c_function(61), "a.c:1: f() has 61 lines, more than 60"),
    ("a.c", c_function(60) + "\n" + c_function(60), None),
    ("a.py", python_function(60), None),
    ("a.py", "\n" + python_function(61), "a.py:2: f() has 61 lines, more than 60"),
    ("a", "#!/usr/bin/python3\n" + python_function(61), "a:2: f() has 61 lines, more than 60"),
    ("a.8", ".\n" * 450, None),
    ("a.8", ".\n" * 451, "a.8:1: 451 lines, more than 450"),
    ("a.json", "1\n" * 451, None),
    ("a.md", "x" * 100 + "\n", None),
    ("a.md", "\n" + "x" * 101, "a.md:2: 101 columns, more than 100"),
    ("a.md", "|" + "x" * 101 + "|\n    " + "x" * 101, None),
])
def test_sizes(tmp_path, name, text, said):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    done = subprocess.run([SIZES, tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == ((1, f"{said}\n", "") if said else (0, "", ""))

# SPDX-License-Identifier: GPL-2.0-only
"""What scripts/words counts as a comment, which words it counts, and when it fails."""

import subprocess
from pathlib import Path

import pytest

WORDS = Path(__file__).resolve().parents[2] / "scripts/words"

C_SOURCE = """\
// SPDX-License-Identifier: GPL-2.0-only
/* Four words, who counts. */
int x;\t// somebody's
const char *s = "/* who */", q = '"'; /* nobody */
"""
PYTHON_SOURCE = '''\
#!/usr/bin/python3
"""He is counted."""
text = "who # who"  # Whoever, but not whole
'''


@pytest.fixture(name="words")
def fixture_words(tmp_path):
    """scripts/words in a checkout with the given files; returns its exit code and the lines it prints."""
    def run(files, *arguments):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
        subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
        result = subprocess.run([WORDS, *arguments], cwd=tmp_path, check=False, capture_output=True, text=True)
        return result.returncode, result.stdout.splitlines()
    return run


def test_counts_c_comments_only(words):
    """Strings and the SPDX line don't count; a possessive does."""
    code, lines = words({"a/x.c": C_SOURCE})
    assert code == 0
    assert lines[1].split() == ["a", "6", "3", "500.0"]


def test_counts_python_comments_and_docstrings(words):
    """Interpreter line and other strings don't count; a script without suffix is known by its first line."""
    _, lines = words({"a/tool": PYTHON_SOURCE, "a/table.txt": "who\n"})
    assert lines[1].split() == ["a", "7", "2", "285.7"]


def test_worst_folder_first(words):
    """One line a folder."""
    _, lines = words({"a/x.c": "/* good words */\n", "b/x.c": "/* who */\n"})
    assert [line.split()[0] for line in lines[1:]] == ["b", "a"]


def test_limit(words):
    """--most fails only for a folder above the limit."""
    files = {"a/x.c": "/* one in four: who */\n"}
    assert words(files, "--most", "250")[0] == 0
    assert words(files, "--most", "249")[0] == 1


def test_where(words):
    """Each place, with the line inside a long comment; only below the folder that was asked for."""
    _, lines = words({"a/x.c": "\n/*\n * for\n * him\n */\n", "b/x.c": "/* who */\n"}, "--where", "a")
    assert lines[0] == "a/x.c:4: him"
    assert len(lines) == 3

# SPDX-License-Identifier: GPL-2.0-only
"""Each block of docs/recipes is run by a test in the guest, or says that none runs it."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/vm"))

import recipes      # noqa: E402

TESTS = "".join((ROOT / "tests/vm" / name).read_text(encoding="utf-8") for name in ("test_recipes.py", "recipes_machine.py"))
MARKS = {"", "fails", "not-run"}


def test_each_block_is_run():
    run = set(re.findall(r'\brecipe\("([\w-]+)"\)', TESTS))
    known = recipes.blocks()
    commands = {name: block for (kind, name), block in known.items() if kind == "sh"}
    assert {block.mark for block in known.values()} <= MARKS
    assert run == {name for name, block in commands.items() if block.mark != "not-run"}
    assert {name for kind, name in known if kind == "fstab"} <= run


def test_pages_have_no_other_code():
    """A list of commands that is indented, or without a name, would never be run."""
    for page in recipes.PAGES:
        assert not re.search(r"^(    |\t)\S", recipes.BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE), page
    with pytest.raises(AssertionError):
        recipes.blocks_of("```\nreboot\n```\n")


def test_lines_of_the_output():
    """Parts of lines, in their order."""
    (block,) = recipes.blocks_of("```sh x\necho\n#> a … c\n#> d+\n```\n")
    assert recipes.missing(block, "x a b c\nd+\n") is None
    assert recipes.missing(block, "d+\na c\n") == r"d\+"
    assert recipes.missing(block, "a b\nd+\n") is not None

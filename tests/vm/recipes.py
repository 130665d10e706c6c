# SPDX-License-Identifier: GPL-2.0-only
"""The commands of docs/recipes, as the pages have them.

A fenced block of a page begins with a kind and a name: "```sh redis", "```fstab redis". The lines of an "fstab" block belong
into /etc/fstab. The commands of an "sh" block are run by bash, which stops at the first that fails. After "fails" in the head
of the block they must fail; after "not-run" no test runs them. A line that begins with "#>" is a part of a line of the
output; "…" stands for anything.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/recipes").glob("*.md"))
STAND_IN = ROOT / "tests/vm/stand_in"       # has the systemctl of a machine without systemd
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SIGN = "#>"


@dataclass
class Block:
    """A block of a page."""
    kind: str
    name: str
    mark: str
    text: str

    def expected(self):
        """A pattern for each line that the output must have."""
        lines = [line.removeprefix(SIGN).strip() for line in self.text.splitlines() if line.startswith(SIGN)]
        return [".*".join(re.escape(part) for part in re.split(r"\s*…\s*", line)) for line in lines]


def blocks_of(text):
    """The blocks of a page's text."""
    found = []
    for head, content in BLOCK.findall(text):
        words = head.split()
        assert len(words) in (2, 3) and words[0] in ("sh", "fstab"), f"a block without kind and name: {head!r}"
        found.append(Block(*words, *([""] * (3 - len(words))), content))
    return found


def blocks():
    """All blocks of all pages, by kind and name."""
    found = {}
    for page in PAGES:
        for block in blocks_of(page.read_text(encoding="utf-8")):
            assert (block.kind, block.name) not in found, f"two blocks are '{block.kind} {block.name}'"
            found[block.kind, block.name] = block
    return found


def missing(block, output):
    """The first expected line that the output lacks, at its place in the order; None: it has all."""
    lines = iter(output.splitlines())
    for pattern in block.expected():
        if not any(re.search(pattern, line) for line in lines):
            return pattern
    return None


def recipe(name):
    """Adds the block's lines to /etc/fstab and runs its commands; returns what these print."""
    known = blocks()
    lines, block = known.get(("fstab", name)), known["sh", name]
    if lines:
        with open("/etc/fstab", "a", encoding="utf-8") as file:
            file.write(lines.text)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd="/", check=False, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PATH": f"{STAND_IN}:{os.environ['PATH']}"})
    assert bool(done.returncode) == (block.mark == "fails"), f"{name}: exit {done.returncode}\n{block.text}\n{done.stdout}"
    lacks = missing(block, done.stdout)
    assert not lacks, f"{name}: the output lacks '{lacks}', or has it elsewhere\n{done.stdout}"
    return done.stdout

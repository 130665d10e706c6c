# SPDX-License-Identifier: GPL-2.0-only
"""Writes the report of a folder of results: build/report/index.html, and Markdown.

The results that git knows are in docs/results: their Markdown is docs/report.md, with charts beside the results. The
Markdown of any other folder goes to build/report.
"""

import sys
from pathlib import Path

from vm.settings import CHECKOUT

from .. import picture
from ..progress import say
from . import found, page
from .questions import QUESTIONS

OURS = CHECKOUT / "docs/results"
BUILD = CHECKOUT / "build/report"


def make(folder: Path = OURS, build: Path = BUILD, docs: Path = CHECKOUT / "docs") -> Path:
    """Returns the page's path."""
    results = found.load(folder)
    if not results:
        raise FileNotFoundError(f"{folder}: no results; 'bench/run NAME' makes some")
    ours = folder.resolve() == OURS
    pictures = folder if ours else build / "charts"
    pictures.mkdir(parents=True, exist_ok=True)
    build.mkdir(parents=True, exist_ok=True)
    for runs in results.values():
        for run in runs:
            picture.draw(run.results, pictures / f"{run.name}.png")
    made = blocks(results, pictures)
    (build / "index.html").write_text(page.page(made), encoding="utf-8")
    beside = docs if ours else build
    (beside / "report.md").write_text(page.markdown(made, beside), encoding="utf-8")
    say(f"{sum(map(len, results.values()))} results, {len(QUESTIONS)} questions, {len(found.losses(QUESTIONS, results))} losses")
    return build / "index.html"


def blocks(results: dict[str, list[found.Run]], pictures: Path) -> list:
    """Each experiment has the picture of its first run."""
    return page.blocks(QUESTIONS, results, {name: pictures / f"{runs[0].name}.png" for name, runs in results.items()})


def main(folder: str | None) -> int:
    try:
        print(make(Path(folder) if folder else OURS))
    except (OSError, ValueError, KeyError) as problem:
        print(f"bench/run report: {problem}", file=sys.stderr)
        return 1
    return 0

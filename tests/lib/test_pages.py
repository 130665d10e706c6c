# SPDX-License-Identifier: GPL-2.0-only
"""The pages: each is in the index of docs/, and links lead to pages and headings that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs/README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("vm/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def links(page):
    """Where the links of a page lead: a path, and the heading or None."""
    for path, heading in LINK.findall(page.read_text(encoding="utf-8")):
        yield (page.parent / path).resolve() if path else page, heading or None


def anchors(page):
    """The headings, as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-") for heading in headings}


def test_the_index_has_every_page():
    linked = {path for path, _ in links(INDEX)}
    assert {page for page in ROOT.glob("docs/*.md") if page != INDEX} - linked == set()
    assert INDEX in {path for path, _ in links(ROOT / "README.md")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for path, heading in links(page):
        assert path.exists(), path
        assert not heading or heading in anchors(path), (path, heading)

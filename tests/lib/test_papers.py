# SPDX-License-Identifier: GPL-2.0-only
"""docs/papers.md names what there is, and every figure, table, listing and algorithm of the five documents."""

import re
import subprocess
from pathlib import Path

import pytest

from bench.experiments import EXPERIMENTS
from bench.report.questions import DRAWINGS, QUESTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/papers.md"
# As captions number them; by hand, as the documents are no part of the project.
CAPTIONS = {
    "Hybrid-storage thesis": ("Table 2.1", "Figure 3.1", "Figure 3.2", "Figure 3.3", "Listing 4.1", "Figure 4.1", "Figure 4.2",
                              "Algorithm 1", "Figure 4.3", "Table 5.1", *(f"Figure 5.{number}" for number in range(1, 7))),
    "Hybrid-SSD paper": ("Figure 1",),
    "DPWC": ("Figure 2.1", "Figure 3.1", "Figure 3.2", "Algorithm 1", "Algorithm 2", *(f"Figure 5.{number}" for number in range(1, 10))),
    "Caiti": (*(f"Figure {number}" for number in range(1, 11)), "Algorithm 1", "Table 1"),
    "PMDK evaluation": (*(f"Figure {number}" for number in range(1, 18)), "Table 1", *(f"Listing {number}" for number in range(1, 14))),
}
CAPTION = re.compile(r"(?:Figure|Table|Listing|Algorithm) \d+(?:\.\d+)?")


def sections():
    """The text of each document's section, by heading."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def rows(text):
    """The cells of each row of each table, headings left out."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "in the document":
            yield cells


def test_each_document_has_a_section():
    assert list(sections()) == list(CAPTIONS)


@pytest.mark.parametrize("document", CAPTIONS)
def test_every_caption_has_one_row(document):
    found = [match[0] for cells in rows(sections()[document]) if (match := CAPTION.match(cells[0]))]
    assert sorted(found) == sorted(CAPTIONS[document])


@pytest.mark.parametrize("document", CAPTIONS)
def test_every_row_says_where_and_what_differs(document):
    for cells in rows(sections()[document]):
        assert len(cells) == 3 and all(cells), cells
        assert ("not there" in cells[1]) != ("`" in cells[1]), cells
        assert cells[2].rstrip("|").strip().endswith("."), cells


def test_every_path_is_in_git():
    known = set(subprocess.run(["git", "-C", str(ROOT), "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines())
    named = re.findall(r"`([\w./-]+\.(?:c|h|py|md)|[\w-]+(?:/[\w.-]+)+)`", PAGE.read_text(encoding="utf-8"))
    named = [name for name in named if not name.startswith("/")]
    assert len(named) > 100
    assert [name for name in named if name not in known and not (ROOT / name).is_dir()] == []


def test_every_experiment_and_target_exists():
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`bench/run ([\w-]+)`", text)) - {"report"}
    assert named == set(EXPERIMENTS)
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    assert set(re.findall(r"`make ([\w-]+)`", text)) <= targets


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target).exists(), target


def part_of(caption, question):
    """Whether a question is about that figure, or a part of it: "Figure 2b" of "Figure 2"."""
    return re.match(rf"{re.escape(caption)}(?![\d.])", question.caption) is not None


@pytest.mark.parametrize("document", CAPTIONS)
def test_the_report_has_every_caption(document):
    asked = [question for question in QUESTIONS if question.document == document]
    for caption in CAPTIONS[document]:
        drawing = caption in DRAWINGS.get(document, ())
        assert drawing != any(part_of(caption, question) for question in asked), caption


@pytest.mark.parametrize("document", CAPTIONS)
def test_page_and_report_name_the_same_experiments(document):
    for cells in rows(sections()[document]):
        if (match := CAPTION.match(cells[0])) and match[0] not in DRAWINGS.get(document, ()):
            asked = {question.experiment for question in QUESTIONS if question.document == document and part_of(match[0], question)}
            assert asked - {""} <= set(re.findall(r"`bench/run ([\w-]+)`", cells[1])), cells[0]

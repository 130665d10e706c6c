# SPDX-License-Identifier: GPL-2.0-only
"""The report as blocks: headings, paragraphs, tables, pictures; then as Markdown and as one HTML page."""

import base64
import html
import textwrap
from dataclasses import dataclass
from pathlib import Path

from ..table import COST, number
from . import found
from .questions import DRAWINGS, Question

WIDTH = 100             # columns of Markdown, tables aside


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Table:
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Picture:
    path: Path
    about: str


def blocks(questions: tuple[Question, ...], results: dict[str, list[found.Run]], charts: dict[str, Path]) -> list:
    made = [Heading(1, "Report: the documents' figures beside ours"), Text(
        "`bench/run report` makes this page from results; nothing on it is typed but the documents' numbers and the reasons. A ratio is of "
        "medians, and above 1 the first system is ahead. \"Level\" is within "
        f"{found.percent(found.LEVEL)} of 1. \"Measured\" is {found.ENOUGH} rounds or more. Results that don't know the host's load after the "
        "run are not called quiet."), *loss_blocks(questions, results), *overview(questions, results)]
    shown: set[str] = set()
    for document in dict.fromkeys(question.document for question in questions):
        made.append(Heading(2, document))
        for question in questions:
            if question.document == document:
                made += entry(question, results, charts, shown)
        if document in DRAWINGS:
            made.append(Text(f"Nothing to measure: {', '.join(DRAWINGS[document])} (see papers.md)."))
    return made


def loss_blocks(questions, results) -> list:
    rows = [(f"{loss.question.caption} ({loss.question.document})",
             f"{loss.points[0].of}: {number(loss.points[0].ratio)} × {loss.points[0].to} at `{loss.points[0].workload}`",
             loss.others() or "none", f"{len(loss.points)} of {loss.of}; {found.unclear(loss.points)}", loss.status, loss.question.why)
            for loss in found.losses(questions, results)]
    return [Heading(2, "Losses"), Text("Where ours is behind, the worst first."),
            Table(("question", "worst", "others ahead of it", "points behind", "status", "why"), rows)]


def overview(questions, results) -> list:
    rows = []
    for question in questions:
        run = found.answering(question, results)
        rows.append((question.document, question.caption, f"`{question.experiment}`" if question.experiment else "none",
                     found.status(run)))
    states = [status for *_, status in rows]
    missing = states.count("not measured")
    measured = sum(status.startswith("measured") for status in states)
    busy, quiet = (sum(words in status for status in states) for words in ("busy host", "quiet host"))
    return [Heading(2, "What was measured"),
            Text(f"Of {len(rows)} questions {measured} have {found.ENOUGH} rounds or more, {len(rows) - measured - missing} have fewer "
                 f"rounds, {missing} have no result. Of those with a result {busy} are from a busy host, {quiet} from a quiet one; of the "
                 "others the load after the run is not known."),
            Table(("document", "figure or table", "experiment", "status"), rows)]


def entry(question: Question, results, charts: dict[str, Path], shown: set[str]) -> list:
    run = found.answering(question, results)
    made = [Heading(3, question.caption), Text(question.asks)]
    if question.theirs:
        made.append(Text(f"In the document: {question.theirs}"))
    if run is None:
        return made + [Text(f"**Not measured.** {not_measured(question, results)}")]
    compared = [(compare, points) for compare in question.compare if (points := found.points(compare, run.rows))]
    compared.sort(key=lambda pair: min(point.ratio for point in pair[1]))
    if compared:
        made.append(Text(f"**Found:** {found.sentence(*compared[0])}"))
        made.append(Table(("", "document", "here", "", "spread"), [
            (f"{compare.of} / {compare.to}{by(compare)}", compare.theirs or "not in the documents", found.times(points),
             counted(points), found.unclear(points)) for compare, points in compared]))
    if question.readings:
        made.append(Table(("", "document", "here"), readings(question, run)))
    if question.why:
        made.append(Text(question.why))
    made.append(Text(f"Status of `{question.experiment}`: {found.status(run)}; {found.spread(run)}."))
    if question.experiment in shown:
        return made + [Text(f"The chart of `{question.experiment}` is above.")]
    shown.add(question.experiment)
    made += [Text(said) for said in (*run.void, *found.agreement(results[question.experiment]))]
    return made + [Picture(charts[question.experiment], f"{question.experiment}: {question.caption}"), *costs(run.rows)]


def costs(rows: list[dict]) -> list:
    """A workload a row, a system a column."""
    known = {(row["workload"], row["system"]): cost(row) for row in rows if COST in row}
    if not known:
        return []
    workloads, names = (list(dict.fromkeys(key[at] for key in known)) for at in (0, 1))
    return [Text("What an operation costs: processor time of the whole machine without idle, context switches, and what goes to the "
                 "SSD while the workload runs."),
            Table(("", *names), [(f"`{workload}`", *(known.get((workload, name), "") for name in names)) for workload in workloads])]


def cost(row: dict) -> str:
    parts = [f"{number(row[COST])} µs"]
    if "cost_switches" in row:
        parts.append(f"{number(row['cost_switches'])} switches")
    if "cost_ssd_bytes" in row:
        parts.append(f"{number(row['cost_ssd_bytes'] / 1024)} KiB")
    return ", ".join(parts)


def not_measured(question: Question, results) -> str:
    if not question.experiment:
        return question.why
    void = [said for run in results.get(question.experiment, ()) for said in run.void]
    return " ".join(void) or f"`bench/run {question.experiment}` answers; its results are not here."


def by(compare) -> str:
    return "" if compare.figure == "value" else f", {compare.figure}"


def counted(points) -> str:
    said = [point.says() for point in points]
    return ", ".join(f"{said.count(word)} {word}" for word in ("behind", "level", "ahead") if word in said)


def readings(question: Question, run: found.Run) -> list[tuple[str, ...]]:
    known = {(row["workload"], row["system"]): row for row in run.rows}
    made = []
    for reading in question.readings:
        row = known.get((reading.workload, reading.system))
        if row and reading.figure in row:
            of = f" ({number(row['spread'][0])} to {number(row['spread'][1])})" if reading.figure == "value" else ""
            made.append((f"{reading.workload}, {reading.system}: {reading.unit}", reading.theirs or "not in the documents",
                         number(row[reading.figure]) + of))
    return made


def markdown(made: list, beside: Path) -> str:
    """Pictures are linked from a page in that folder."""
    lines = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->"]
    for block in made:
        if isinstance(block, Heading):
            lines += [*([""] if block.level > 1 else []), f"{'#' * block.level} {block.text}", ""]
        elif isinstance(block, Text):
            lines += [textwrap.fill(block.text, WIDTH, break_long_words=False, break_on_hyphens=False), ""]
        elif isinstance(block, Table):
            lines += [row_of(block.heads), "|" + "---|" * len(block.heads), *map(row_of, block.rows), ""]
        else:
            lines += [f"![{block.about}]({block.path.relative_to(beside)})", ""]
    text = "\n".join(lines).rstrip() + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def row_of(cells) -> str:
    return "| " + " | ".join(cells) + " |"


STYLE = """body { font: 15px/1.5 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px } td, th { border-bottom: 1px solid #ddd; padding: .3em .7em; text-align: left;
vertical-align: top } img { max-width: 100% } h3 { margin-top: 2.2em } code { background: #f2f3f5; padding: 0 .2em }"""


def page(made: list) -> str:
    """One file: pictures are in it."""
    parts = []
    for block in made:
        if isinstance(block, Heading):
            parts.append(f"<h{block.level}>{inline(block.text)}</h{block.level}>")
        elif isinstance(block, Text):
            parts.append(f"<p>{inline(block.text)}</p>")
        elif isinstance(block, Table):
            heads = "".join(f"<th>{inline(cell)}</th>" for cell in block.heads)
            rows = "".join("<tr>" + "".join(f"<td>{inline(cell)}</td>" for cell in row) + "</tr>\n" for row in block.rows)
            parts.append(f"<table><tr>{heads}</tr>\n{rows}</table>")
        else:
            picture = base64.b64encode(block.path.read_bytes()).decode()
            parts.append(f'<img alt="{html.escape(block.about)}" src="data:image/png;base64,{picture}">')
    title = next(block.text for block in made if isinstance(block, Heading))
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n<style>{STYLE}</style>'
            "</head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n")


def inline(text: str) -> str:
    """`code` and **bold**."""
    for mark, tag in (("**", "b"), ("`", "code")):
        parts = (html.escape(text, quote=False) if mark == "**" else text).split(mark)
        text = "".join(f"<{tag}>{part}</{tag}>" if index % 2 else part for index, part in enumerate(parts))
    return text

# SPDX-License-Identifier: GPL-2.0-only
"""What the suite's `check` says, test by test; and what two runs of the same tests differ in."""

import re

PASSED, NOT_RUN, FAILED, KILLED, HUNG = "passed", "not run", "failed", "killed", "hung"
BAD = (FAILED, KILLED, HUNG)

HEAD = re.compile(r"^((?:\w+)/\d{3,}) *(?: |\t|$)", re.MULTILINE)
END = re.compile(r"^(?:Ran: |Interrupted!|Passed all |Not run: |Failures: )", re.MULTILINE)


def parse(text):
    """[(test, text)] in the order of the tests; the last one may still be running."""
    end = END.search(text)
    text = text[:end.start()] if end else text
    heads = list(HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [(head[1], text[head.end():stop].strip()) for head, stop in zip(heads, ends)]


def judge(text):
    """(result, why) of a test that has ended."""
    first, _, _ = text.partition("\n")
    text = re.sub(r"^\d+s \.\.\. *", "", text).strip()
    if "[not run]" in first:
        return NOT_RUN, text.partition("[not run]")[2].strip()
    if "[expunged]" in first:
        return NOT_RUN, "left out"
    if re.fullmatch(r"\d+s", text):
        return PASSED, ""
    return FAILED, text


def compare(mine, reference):
    """{kind: [test]}: what a run over forebay says beside the same run on the lower file system alone."""
    kinds = {"passed": [], "not run": [], "failed on both": [], "failed alone": [], "not run alone": [], "no reference": []}
    for test in sorted(mine, key=order):
        result = mine[test]["result"]
        other = reference.get(test, {}).get("result")
        if result == PASSED:
            kinds["passed"].append(test)
        elif other is None:
            kinds["no reference"].append(test)
        elif result == NOT_RUN:
            kinds["not run" if other == NOT_RUN else "not run alone"].append(test)
        else:
            kinds["failed on both" if other in BAD else "failed alone"].append(test)
    return kinds


def order(test):
    """Sorts 'generic/009' before 'generic/1000'."""
    group, _, number = test.partition("/")
    return group, int(number)


def table(title, mine, reference):
    """The comparison as Markdown."""
    kinds = compare(mine, reference)
    ran = sum(entry["result"] != NOT_RUN for entry in mine.values())
    lines = [f"## {title}", "", "| | tests |", "|---|---|", f"| ran | {ran} |"]
    lines += [f"| {kind} | {len(tests)} |" for kind, tests in kinds.items() if tests]
    for kind in ("failed alone", "not run alone", "failed on both", "no reference"):
        if kinds[kind]:
            lines += ["", f"### {kind}", "", "| test | what it said |", "|---|---|"]
            lines += [f"| {test} | {mine[test]['result']}: {_cell(mine[test]['why'])} |" for test in kinds[kind]]
    return "\n".join(lines) + "\n"


def _cell(text):
    """A few lines of what a test said, in a cell."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    shown = [line for line in lines if line[:1] in "+-" and not line.startswith(("---", "+++", "- output"))] or lines
    return "<br>".join(line[:120].replace("|", "\\|") for line in shown[:4])

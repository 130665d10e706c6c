# SPDX-License-Identifier: GPL-2.0-only
"""What a test file of pjdfstest says (the Test Anything Protocol), and what two runs differ in."""

import re

PLAN = re.compile(r"^1\.\.(\d+)", re.MULTILINE)
LINE = re.compile(r"^(not ok|ok)(?: (\d+))?(.*)$", re.MULTILINE)


def failures(text, status=0):
    """{number: what it says} of the tests in one file that failed or never came; 0 stands for the file itself."""
    failed, seen = {}, set()
    for word, number, rest in LINE.findall(text):
        number = int(number or len(seen) + 1)
        seen.add(number)
        if word == "not ok" and "# TODO" not in rest:
            failed[number] = rest.strip(" -")
    plan = PLAN.search(text)
    if not plan or status:
        failed[0] = f"exit status {status}" if status else "no plan"
    elif missing := set(range(1, int(plan[1]) + 1)) - seen:
        failed.update({number: "did not come" for number in missing})
    return failed


def count(text):
    """How many tests there were in it."""
    return len(LINE.findall(text))


def alone(mine, reference):
    """[(file, number, text)]: what fails here and doesn't in the reference; both are {file: {number: text}}."""
    return [(file, number, text) for file in sorted(mine) for number, text in sorted(mine[file].items(), key=lambda entry: int(entry[0]))
            if number not in reference.get(file, {})]

# SPDX-License-Identifier: GPL-2.0-only
"""The parsing of what `check` says, and the comparison: each result must be seen as what it is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import results      # noqa: E402

TEXT = """\
FSTYP         -- ext4
PLATFORM      -- Linux/x86_64 forebay-vm 6.12.0
MKFS_OPTIONS  -- /dev/nvme1n1
MOUNT_OPTIONS -- -o acl,user_xattr /dev/nvme1n1 /mnt/scratch

generic/001        199s
generic/002 5s ...  19s
generic/003       [not run] noatime is needed
generic/392       - output mismatch (see /run/xfstests/results/generic/392.out.bad)
    --- tests/generic/392.out
    +++ /run/xfstests/results/generic/392.out.bad
    @@ -1,2 +1,3 @@
     QA output created by 392
    +Before: 1
    ...
generic/475       _check_dmesg: something found in dmesg (see /run/xfstests/results/generic/475.dmesg)

generic/1024      [failed, exit status 1]
generic/1025      [expunged]
Ran: generic/001 generic/002 generic/003 generic/392 generic/475
Not run: generic/003
Failures: generic/392 generic/475
Failed 2 of 5 tests
"""


def judged(text):
    return {test: results.judge(said) for test, said in results.parse(text)}


def test_each_result():
    found = {test: result for test, (result, _) in judged(TEXT).items()}
    assert found == {"generic/001": "passed", "generic/002": "passed", "generic/003": "not run", "generic/392": "failed",
                     "generic/475": "failed", "generic/1024": "failed", "generic/1025": "not run"}


def test_what_it_says():
    found = judged(TEXT)
    assert found["generic/003"][1] == "noatime is needed"
    assert "+Before: 1" in found["generic/392"][1]
    assert "dmesg" in found["generic/475"][1]


def test_a_test_that_still_runs_is_the_last():
    text = TEXT[:TEXT.index("199s")]
    assert results.parse(text) == [("generic/001", "")]
    assert results.parse("FSTYP         -- ext4\n") == []


def entry(result, why=""):
    return {"result": result, "why": why}


def test_comparison():
    mine = {"generic/1": entry("passed"), "generic/2": entry("not run"), "generic/3": entry("not run"), "generic/4": entry("failed"),
            "generic/5": entry("killed"), "generic/10": entry("hung"), "generic/6": entry("failed")}
    reference = {"generic/2": entry("not run"), "generic/3": entry("passed"), "generic/4": entry("failed"), "generic/5": entry("passed"),
                 "generic/10": entry("not run")}
    assert results.compare(mine, reference) == {
        "passed": ["generic/1"], "not run": ["generic/2"], "not run alone": ["generic/3"], "failed on both": ["generic/4"],
        "failed alone": ["generic/5", "generic/10"], "no reference": ["generic/6"]}


def test_table_shows_the_difference():
    mine = {"generic/392": entry("failed", "- output mismatch\n    --- a\n    +++ b\n    -Before: 1|2\n    +Before: 3")}
    text = results.table("forebay over ext4", mine, {"generic/392": entry("passed")})
    assert "| failed alone | 1 |" in text
    assert "| generic/392 | failed: -Before: 1\\|2<br>+Before: 3 |" in text

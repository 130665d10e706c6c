# SPDX-License-Identifier: GPL-2.0-only
"""Finds in a kernel log what no test run may pass over: panics, warnings, sanitizer reports, leaks, stalls."""

import re

REPORT = re.compile(r"""
    Kernel\ panic | \bOops\b | kernel\ BUG\ at | \bBUG: | \bWARNING: | general\ protection\ fault |
    \bKASAN: | \bUBSAN: | \bKFENCE: | \bKCSAN: |
    kmemleak: .* (disabled|Cannot) |
    INFO:\ task\ .*\ blocked\ for\ more\ than | INFO:\ trying\ to\ register\ non-static\ key |
    rcu:? .* (self-detected\ stall|detected\ stalls|expedited\ stalls) | soft\ lockup | hard\ LOCKUP |
    (list_add|list_del)\ corruption | refcount_t: | DEBUG_LOCKS_WARN_ON | suspicious\ RCU\ usage |
    Objects\ remaining | \bleaked\b | Unable\ to\ handle\ kernel | unable\ to\ handle\ page\ fault |
    Call\ Trace: | double\ fault | bad\ page\ state | scheduling\ while\ atomic | sleeping\ function\ called
    """, re.VERBOSE)

# What stock kernels say at boot in a healthy guest. Each line here is one exact message.
HARMLESS = [re.compile(pattern) for pattern in (
)]

BEFORE, AFTER, LONGEST = 2, 45, 240


def reports(text):
    """Excerpts of the log around every report, as one list of lines; empty if there is none."""
    lines = text.replace("\r", "").splitlines()
    shown = {}
    last = -1
    for number, line in enumerate(lines):
        if number <= last or not REPORT.search(line) or any(known.search(line) for known in HARMLESS):
            continue
        if shown and number - BEFORE > last + 1:
            shown[number - BEFORE - 0.5] = "    ..."
        last = min(len(lines) - 1, number + AFTER)
        for near in range(max(0, number - BEFORE), last + 1):
            shown[near] = lines[near]
    excerpt = [shown[key] for key in sorted(shown)]
    return excerpt[:LONGEST]


def is_the_emulators(lines):
    """True if a report is of a breakpoint that the code doesn't have. QEMU's translator still had it: vm/README.md."""
    return any("Oops: int3" in line for line in lines) and any(re.search(r"Code: .*\b(?!cc)[0-9a-f]{2} <", line) for line in lines)


def our_leaks(text):
    """What kmemleak reports that has a function of ours in its history; what a stock kernel leaks is not our affair."""
    blocks = re.split(r"^(?=unreferenced object)", text, flags=re.MULTILINE)
    return [line for block in blocks if "forebay" in block for line in block.splitlines()]

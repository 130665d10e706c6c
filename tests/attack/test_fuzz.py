# SPDX-License-Identifier: GPL-2.0-only
"""The fuzzer (see fuzz/main.c), in rounds. After each round all pages must be in the lower file system.

FOREBAY_FUZZ: seconds in all (120); FOREBAY_SEED; FOREBAY_FUZZ_FS: lower file systems (ext4,xfs);
FOREBAY_FUZZ_OPTIONS: for the program, as without=mutex,hold.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from stack import LOWER, MOUNT, Stack, drop_caches, run, small_cache

FUZZ = Path(__file__).resolve().parents[2] / "build/tests/fuzz"
LOG = FUZZ.with_name(f"fuzz-{int(time.time())}.log")
STATE = Path("/run/fuzz")
SECONDS = int(os.environ.get("FOREBAY_FUZZ", "120"))
SYSTEMS = os.environ.get("FOREBAY_FUZZ_FS", "ext4,xfs").split(",")
OPTIONS = os.environ.get("FOREBAY_FUZZ_OPTIONS", "").split()
DEBUG = "debug" in os.uname().release
ROUND = 30          # seconds until the checks; a second round goes on with the first one's files
# How many times 10 s a call may take: less than the kernel's own limit for a task that hangs (vm/qemu.py). A flush of the
# guest is one of the host's disk, which may be busy, and a log force takes several.
SLOW = ["slow=12"] if DEBUG else ["slow=6"]
TRIES = 30          # of a drain, with a second between them

# MiB of cache, options of forebay format
CACHES = [(8, ""), (4, ""), (8, "--files 16"), (60, "")]


def fuzz(*arguments):
    """Runs the program; returns its output if it failed. LOG keeps the output even if the machine dies."""
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(f"== {' '.join(map(str, arguments))}\n")
        log.flush()
        done = subprocess.run(f"set -o pipefail; {FUZZ} {' '.join(map(str, arguments))} 2>&1 | tee -a {LOG}", shell=True, check=False, text=True,
                              errors="replace", stdout=subprocess.PIPE, executable="/bin/bash")
    print(done.stdout)
    if "VIOLATION stuck" in done.stdout:
        pytest.exit(f"some hang for ever: {LOG}", 1)
    return done.stdout + f"exit {done.returncode}" if done.returncode else ""       # wrong usage says nothing


def all_goes_below(stack):
    """After the processes have ended no page is held: a drain leaves no page out of sync."""
    for _ in range(TRIES):
        said = stack.drain(check=False)
        left = stack.value("pages_out_of_sync")
        if not left and "rror" not in said and "usy" not in said:
            return
        time.sleep(1)
    raise AssertionError(f"{left} pages are out of sync after {TRIES} drains, though all have let go: {said}")


def one_round(stack, seconds, seed):
    """Returns the violations that the program found during the run, or in the lower files afterwards."""
    found = fuzz("run", MOUNT / "d", STATE, int(seconds), seed, *SLOW, *OPTIONS)
    all_goes_below(stack)
    stack.umount()
    found += fuzz("verify", LOWER / "d", STATE)
    stack.fsck()
    drop_caches()
    stack.mount()
    return found


def new_stack(fs, mib, options):
    """Makes a stack with a cache of that size."""
    clean_up()
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir()
    stack = Stack(fs=fs, cache=small_cache(mib)).make()
    if options:
        stack.umount()
        run(f"forebay format --force {options} {stack.cache}")
        stack.mount()
    (MOUNT / "d").mkdir()
    os.chmod(MOUNT / "d", 0o1777)
    return stack


@pytest.mark.persistence
@pytest.mark.parametrize("fs", SYSTEMS)
def test_fuzz(fs, seed):
    """Runs rounds until the time is over, two with each cache."""
    deadline = time.time() + SECONDS / len(SYSTEMS)
    found, number = "", seed
    while time.time() < deadline and not found:
        stack = new_stack(fs, *CACHES[number % len(CACHES)])
        for _ in range(2):
            seconds = max(5, min(ROUND, deadline - time.time()))
            print(f"{fs}, cache {CACHES[number % len(CACHES)]}: FOREBAY_SEED={number} FOREBAY_FUZZ_FS={fs}, {seconds:.0f} s")
            found += one_round(stack, seconds, number)
            if found or time.time() > deadline:
                break
        stack.destroy()
        clean_up()
        number += 1
    assert not found, found[:3000]


@pytest.mark.slow       # for lockdep: docs/decisions/locks.md
@pytest.mark.parametrize("fs", SYSTEMS)
def test_lower_alone(fs, seed):
    """The same without forebay: a violation on the lower file system alone is the fuzzer's own fault."""
    stack = new_stack(fs, 8, "")
    stack.umount()
    assert not fuzz("run", LOWER / "d", STATE, 10, seed, *SLOW, "plain", "without=claim,drop,nonsense,press,drain,remount,freeze,look")
    assert not fuzz("verify", LOWER / "d", STATE)
    stack.destroy()
    clean_up()


def test_the_fuzzer_notices():
    """The fuzzer reports a byte that changes without its model, above and below."""
    stack = new_stack(SYSTEMS[0], 8, "")
    assert "VIOLATION bytes" in fuzz("run", MOUNT / "d", STATE, 8, 1, "selftest", "only=write,read_whole,cheat,sync", *SLOW)
    all_goes_below(stack)
    stack.umount()
    path = LOWER / "d" / "p1a"
    data = path.read_bytes()
    path.write_bytes(data[:99] + bytes([data[99] ^ 0xFF]) + data[100:])
    assert "VIOLATION below" in fuzz("verify", LOWER / "d", STATE)
    stack.destroy()
    clean_up()

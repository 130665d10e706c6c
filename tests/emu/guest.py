# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: cuts the power of something that is being written to, again and again, and checks what is
left.

    guest.py forebay|writelog CUTS SEED [SECONDS]

Writers never stop; each has blocks of its own. A block's version that is acknowledged before a cut must be
found after the cut. Prints a line now and then, and each violation; exits with LOST at the first.
"""

import os
import random
import signal
import sys
import time
import traceback

import subjects
from blocks import LOST, Versions, contents

WRITERS = 3
SHOWN_EVERY = 20        # seconds
PATIENCE = 120          # seconds
NICE = -10              # of the process that cuts and checks: the writers do enough as it is


def write_for_ever(subject, versions, writer):
    """Writes new versions of one writer's blocks until the process is killed."""
    chance = random.Random(writer)
    mine = range(writer, versions.blocks, WRITERS)
    while True:
        block = chance.choice(mine)
        version = versions.begun[block] + 1
        versions.begun[block] = version
        subject.write(block, contents(block, version))
        versions.acknowledged[block] = version


def start_writers(subject, versions):
    """Starts the writers; returns their processes."""
    writers = []
    for number in range(WRITERS):
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                write_for_ever(subject, versions, number)
            finally:
                traceback.print_exc()
                os._exit(1)
        writers.append(pid)
    return writers


def check(subject, versions, seed):
    """Cuts once; returns what is wrong with what is left."""
    least = list(versions.acknowledged)
    subject.cut(seed)
    try:
        subject.open_copy()
    except OSError as problem:
        return [f"what was left could not be opened: {problem}; see dmesg"]
    wrong = [text for text in (versions.wrong(block, data, least[block]) for block, data in subject.read()) if text]
    subject.close_copy()
    return wrong


def ended(writers):
    """What is wrong with the writers, each of which works until it is killed. Forgets those that have ended."""
    gone = [pid for pid in writers if os.waitpid(pid, os.WNOHANG)[0]]
    for pid in gone:
        writers.remove(pid)
    return ["a writer ended by itself, with an error"] * len(gone)


def wait_for_writers(versions):
    """Until a write was acknowledged: a few cuts can be over before the first one was."""
    end = time.monotonic() + PATIENCE
    while not any(versions.acknowledged) and time.monotonic() < end:
        time.sleep(0.01)


def campaign(subject, versions, writers, cuts, seed, seconds):
    """Returns how many cuts were made, and the first violations."""
    wait_for_writers(versions)
    began = shown = time.monotonic()
    for number in range(cuts):
        wrong = check(subject, versions, seed + number) + ended(writers)
        now = time.monotonic()
        if wrong:
            return number + 1, wrong
        if now - began > seconds:
            cuts = number + 1
            break
        if now - shown > SHOWN_EVERY:
            shown = now
            print(f"  {subject.NAME}: {number + 1} cuts, {sum(versions.acknowledged)} writes acknowledged", flush=True)
    return cuts, [] if any(versions.acknowledged) else ["no write was acknowledged, so none could be lost"]


def main(name, cuts, seed, seconds="1e9"):
    """Sets up one subject and runs its cuts."""
    kind = {"forebay": subjects.FileSystem, "writelog": subjects.WriteLog}[name]
    subject, versions = kind(), Versions(kind.BLOCKS)
    writers = start_writers(subject, versions)
    os.nice(NICE)
    made, wrong = campaign(subject, versions, writers, int(cuts), int(seed), float(seconds))
    for pid in writers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not wrong:
        subject.end()
    print("\n".join(wrong[:20]) + ("\n" if wrong else "")
          + f"{name}: {made} cuts, {sum(versions.acknowledged)} writes acknowledged, {len(wrong)} violations, seed {seed}", flush=True)
    return LOST if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: GPL-2.0-only
"""Many power cuts, one after the other, in legs: a leg keeps one system and its devices' images.

In a leg, each boot checks what the cut before it left and runs into the next one, on the files that are there or on
fresh ones; the last boot only checks. So N cuts take N boots and one more a leg.
"""

import json
import os
import random
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, field, replace

from .boot import BUILD, HERE, Boot, Dice, System
from .iteration import Iteration
from .names.iteration import NamesIteration
from .plan import Shape

OPS = 6000                      # planned for a writer: more than it can do before the longest cut
LONGEST_LEG = 10
FIRST_MOUNT = 0.5               # seconds that a mount is taken to last before one was measured


@dataclass
class Options:
    seed: int
    running: float = 4.0        # seconds to the latest cut
    fresh: float = 0.3          # how often file systems are made anew
    in_recovery: float = 0.12   # how often the power goes again before recovery is through
    again: int = 1              # and how many times then, each within the mount that follows
    stop: bool = False          # at the first failure
    flushed: bool = False       # writers only store to MAP_SYNC mappings of sparse files, and flush: no sync call
    batches: float | None = None    # how often a writer syncs many pages at once; None: as chance decides
    map_sync: bool = True       # writers store to MAP_SYNC mappings too (forebay only)
    say: object = print


@dataclass
class Tally:
    cuts: int = 0               # with a verdict
    passed: int = 0
    in_recovery: int = 0        # cuts before a recovery was through, besides
    failures: list = field(default_factory=list)
    operations: int = 0
    writes_lost: int = 0
    drained: int = 0
    least_free: list = field(default_factory=list)      # pages of the cache, a run each
    replayed: int = 0           # records of name logs, by mounts that were judged
    seconds: float = 0.0


def build():
    (BUILD / "bin").mkdir(parents=True, exist_ok=True)
    sources = {"ssd": "ssd.c", "filler": "filler.c", **Iteration.programs, **NamesIteration.programs}
    for name, source in sources.items():
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", BUILD / "bin" / f"{name}.new", HERE / source],
                       check=True)
        os.replace(BUILD / "bin" / f"{name}.new", BUILD / "bin" / name)


def leg_lengths(cuts, systems):
    """[(system, cuts)]: the systems in turn."""
    length = max(1, min(LONGEST_LEG, -(-cuts // len(systems))))
    legs = []
    while cuts:
        legs.append((systems[len(legs) % len(systems)], min(length, cuts)))
        cuts -= legs[-1][1]
    return legs


class Leg:
    def __init__(self, folder, system, cuts, options, tally):
        self.folder, self.system, self.cuts, self.options, self.tally = folder, system, cuts, options, tally
        self.images = folder / "images"
        self.random = random.Random(f"{options.seed} {folder.name}")
        self.mount_seconds, self.again = FIRST_MOUNT, 0

    def run(self):
        """Returns True if the leg passed. After a failure the folder keeps what reproducing it needs."""
        self.images.mkdir(parents=True)
        check = None
        for number in range(self.cuts + 1):
            run = self._iteration(number) if number < self.cuts else None
            if not self._boot(check, run, number):
                return False
            if check:
                shutil.rmtree(check.folder)
            check = run
        shutil.rmtree(self.folder)
        return True

    def _shape(self, dice):
        forebay = self.system.name == "forebay"
        return Shape(file_max=(1 << 20) if forebay and (self.system.cache_bytes or dice.batches) else (256 << 10),
                     batches=dice.batches, map_sync=self.options.map_sync and forebay, syncs=dice.syncs,
                     flushed=self.options.flushed)

    def _iteration(self, number):
        return self.system.iteration(self.folder / f"{number:03}")

    def _boot(self, check, run, number):
        dice, self.again = self._throw(), self.options.again
        if check:
            self._keep_images()

        def plan(start):
            run.plan(f"{self.options.seed} {self.folder.name} {number}", number, OPS, self._shape(dice), start)
            run.go()

        if not check:
            dice = replace(dice, in_recovery=None)
        def boot():
            return Boot(self.system, self.images, dice, check, run, plan).carry_out()

        outcome = boot()
        if not outcome.started:         # the system under test was not loaded yet
            self.options.say(f"[{self.folder.name}] the machine did not start; once more")
            outcome = boot()
        while dice.in_recovery is not None and not outcome.failures:
            self.tally.in_recovery += 1
            self.again -= 1
            dice = replace(dice, in_recovery=self._moment() if self.again > 0 else None)
            outcome = boot()
        self.mount_seconds = outcome.mount_seconds or self.mount_seconds
        self._count(outcome, check, run, dice)
        if outcome.failures:
            (self.folder / "failure.json").write_text(json.dumps({
                "system": asdict(self.system), "check": check and check.folder.name, "seed": self.options.seed,
                "what": outcome.failures}, indent=1) + "\n")
        return not outcome.failures

    def _throw(self):
        dice, options = self.random, self.options
        return Dice(
            fresh=dice.random() < options.fresh, running=dice.uniform(0, options.running), operations=dice.randrange(500),
            in_recovery=self._moment() if dice.random() < options.in_recovery else None,
            syncs=dice.choice((1, 1, 0.3, 0.05)), drop_caches=dice.random() < 0.5, writeback_centiseconds=dice.choice((10, 50, 500)),
            dump_mapped=dice.random() < 0.3, ssd_seed=dice.getrandbits(32),
            writeback_age=dice.choice((0, 1, 30)),
            batches=dice.choice((0, 0.01, 0.05)) if options.batches is None else options.batches)

    def _moment(self):
        """Of a cut in a recovery: within the time that the last mount took, or a little later."""
        return self.random.uniform(0, 1.2 * self.mount_seconds)

    def _keep_images(self):
        """Copies the images as the cut left them, to reproduce a failure with."""
        before = self.folder / "before"
        before.mkdir(exist_ok=True)
        for image in self.images.glob("*.img"):
            subprocess.run(["cp", "--sparse=always", image, before / image.name], check=True)

    def _count(self, outcome, check, run, dice):
        tally = self.tally
        tally.seconds += outcome.seconds
        tally.writes_lost += outcome.ssd.get("lost", 0)
        tally.drained += outcome.drained
        tally.replayed += outcome.replayed
        done = sum(done for _, done, _ in run.progress()) if outcome.ran else 0
        tally.operations += done
        if outcome.free_pages:
            tally.least_free.append(min(outcome.free_pages))
        if check:
            tally.cuts += 1
            tally.passed += not outcome.failures
        elif outcome.failures:
            tally.cuts += 1
        if outcome.failures:
            tally.failures.append({"system": str(self.system), "folder": str(self.folder), "seed": self.options.seed,
                                   "violations": outcome.violations, "what": outcome.failures})
        self.options.say(self._line(outcome, check, run, dice, done))
        for text in outcome.failures[:20]:
            self.options.say(f"    {text}")

    def _line(self, outcome, check, run, dice, done):
        parts = []
        if check:
            parts.append(f"cut {self.tally.cuts}: " + ("FAILED" if outcome.failures else "ok"))
        elif outcome.failures:
            parts.append("FAILED")
        if run and outcome.ran:
            parts.append(f"{'fresh' if dice.fresh or not check else 'on'} {done} operations in {dice.running:.1f} s, "
                         f"{outcome.ssd['lost'] + outcome.ssd['torn']} of {outcome.ssd['cached']} cached writes lost")
        if outcome.replayed:
            parts.append(f"{outcome.replayed} records replayed")
        if outcome.drained:
            parts.append("drained")
        if outcome.free_pages:
            parts.append(f"least free {min(outcome.free_pages)}")
        parts.append(f"{outcome.seconds:.1f} s")
        return f"[{self.folder.name}] " + ", ".join(parts)


def again(folder):
    """Boots what the cut before a failure left (a leg's folder) and checks it once more; the Outcome."""
    failure = json.loads((folder / "failure.json").read_text())
    system = System(**failure["system"])
    images = folder / "again"
    shutil.rmtree(images, ignore_errors=True)
    shutil.copytree(folder / "before", images)
    check = system.iteration(folder / failure["check"])
    dice = Dice(fresh=False, running=0, operations=0, in_recovery=None, syncs=1, drop_caches=False, writeback_centiseconds=500,
                dump_mapped=False, ssd_seed=0)
    return Boot(system, images, dice, check).carry_out()


def campaign(cuts, systems, options):
    tally, begin = Tally(), time.monotonic()
    root = BUILD / f"run-{os.getpid()}"
    for number, (system, length) in enumerate(leg_lengths(cuts, systems)):
        options.say(f"leg {number}: {system}, {length} cuts")
        Leg(root / f"leg{number}", system, length, options, tally).run()
        if tally.failures and options.stop:
            break
    tally.seconds = time.monotonic() - begin
    if root.exists() and not any(root.iterdir()):
        root.rmdir()
    return tally

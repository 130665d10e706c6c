# SPDX-License-Identifier: GPL-2.0-only
"""One boot: what the last cut left is checked, then the writers write until the next one."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from vm.machine import Machine
from vm.settings import CHECKOUT, Settings

from .drive import Drive
from .iteration import BOARD_BYTES, NOISE_BYTES, WRITERS, Iteration
from .names.iteration import NamesIteration

HERE = Path(__file__).resolve().parent
BUILD = CHECKOUT / "build" / "powercut"
SSD_BYTES = 512 << 20
TIMEOUT = 1200          # seconds; a machine that takes longer hangs, also on a busy host
PATIENCE = 20           # seconds that a run takes at most, from the first operation on
FIRST_PATIENCE = 120    # seconds until that


@dataclass
class System:
    """What is tested."""
    name: str = "forebay"               # or "lower": the lower file system alone; "writelog", "transit": that over one of these
    lower_type: str = "ext4"
    lower_options: str = "rw"
    kernel: str = "stock"
    persistence: str = "mem-ctrl"
    pmem: int = 64 << 20
    cache_bytes: int = 0                # use only so much of the PMem; 0: all
    module: str = ""                    # a forebay.ko other than the one that is built
    transit_option: str = "policy transit"
    names: str | None = None            # the campaign about names, with a name log of this size; "none": without one

    def rules(self):
        """What the model has to allow: model.py."""
        return {"ordered": self.lower_type != "btrfs", "old_end": self.lower_type == "ext4" and self.name != "forebay"}

    def iteration(self, folder):
        """The one that goes with the campaign."""
        return (NamesIteration if self.names else Iteration)(folder, **self.rules())

    def format_options(self):
        """Of `forebay format`."""
        return f"--names {self.names}" if self.names not in (None, "none") else ""

    def environment(self):
        programs = "names-" if self.names else ""
        return {"FORMAT_OPTIONS": self.format_options(), "WRITER": programs + "writer", "DUMP": programs + "dump",
                "SYSTEM": self.name, "LOWER_TYPE": self.lower_type, "LOWER_OPTIONS": self.lower_options,
                "CACHE_BYTES": str(self.cache_bytes), "MODULE": self.module, "TRANSIT_OPTION": self.transit_option}

    def __str__(self):
        return self._described() + (f", names, log {self.names}" if self.names else "")

    def _described(self):
        if self.name == "lower":
            return f"{self.lower_type} ({self.lower_options})"
        if self.name == "transit":
            return f"{self.lower_type} ({self.lower_options}) over a transit cache, {self.transit_option}"
        cache = self.cache_bytes or self.pmem
        broken = f", {Path(self.module).parent.name}" if self.module else ""
        if self.name == "writelog":
            return f"{self.lower_type} ({self.lower_options}) over a write log, {self.persistence}, {cache >> 20} MiB"
        return f"forebay over {self.lower_type} ({self.lower_options}), {self.persistence}, {cache >> 20} MiB{broken}"


@dataclass
class Dice:
    """What chance decides about a boot."""
    fresh: bool                 # new file systems for the run
    running: float              # seconds from the first operation to the cut
    operations: int             # and at least so many, if the host is not too busy
    in_recovery: float | None   # or seconds from the mount to a cut that comes before the check
    syncs: float                # how much the writers sync: 1 is often
    drop_caches: bool
    writeback_centiseconds: int
    dump_mapped: bool
    ssd_seed: int
    writeback_age: int = 30     # the mount option, in seconds
    batches: float = 0          # how often the writers sync many pages at once


@dataclass
class Outcome:
    failures: list = field(default_factory=list)
    violations: int = 0         # of the failures, promises that were not kept
    started: bool = False       # the machine came up as far as our script
    checked: bool = False       # what the last cut left was looked at
    ran: bool = False           # and the next one came after the writers began
    drained: bool = False
    ssd: dict = field(default_factory=dict)
    free_pages: list = field(default_factory=list)
    seconds: float = 0.0
    mount_seconds: float = 0.0  # that the recovering mount took
    replayed: int = 0           # records that it found in the name log


def board_arguments(path):
    """For QEMU: the guest shares the memory that a file is."""
    return ["-object", f"memory-backend-file,id=board,mem-path={path},size={BOARD_BYTES},share=on",
            "-device", "ivshmem-plain,memdev=board"]


class Boot:
    def __init__(self, system, images, dice, check=None, run=None, plan=None):
        """`check` and `run` are Iterations; `plan(start)` readies `run`, to go on from the iteration `start`."""
        self.system, self.images, self.dice = system, images, dice
        self.check, self.run, self.plan = check, run, plan
        self.outcome = Outcome()

    def carry_out(self):
        begin = time.monotonic()
        if self.run:
            self.run.begin()
            if self._fresh():
                self.plan(None)
        socket = Path(f"/tmp/forebay-ssd-{self.images.stat().st_ino}.sock")
        self.images.joinpath("noise").write_bytes(NOISE_BYTES)
        with Drive(BUILD / "bin/ssd", self.images / "ssd.img", SSD_BYTES, self.dice.ssd_seed,
                   self.images / "ssd.json", socket) as drive:
            machine = Machine(self._settings(drive), ["sh", str(HERE / "guest.sh")], again=drive.again)
            with machine:
                self._follow(machine)
                if self.outcome.failures:
                    machine.cut()
            result = machine.wait()
            self.outcome.ssd = drive.lost()
        self.outcome.started = result.boot_seconds is not None
        self.outcome.failures += result.reports
        if not result.was_cut and result.status:
            self.outcome.failures.append(f"the machine ended with status {result.status}")
        if self.outcome.ran:
            self.outcome.failures += self.run.errors()
        self.outcome.seconds = time.monotonic() - begin
        return self.outcome

    def _fresh(self):
        return self.dice.fresh or not self.check

    def _settings(self, drive):
        qemu = drive.arguments()
        if self.run:
            qemu += board_arguments(self.run.folder / "board")
        environment = {
            **self.system.environment(), "BIN": str(BUILD / "bin"), "NOISE": str(self.images / "noise"),
            "CHECK": str(self.check.folder) if self.check else "", "RUN": str(self.run.folder) if self.run else "",
            "WRITERS": str(WRITERS), "FRESH": str(int(self._fresh())),
            "DROP_CACHES": str(int(self.dice.drop_caches)), "DUMP_HOW": "mmap" if self.dice.dump_mapped and not self.system.names else "",
            "WRITEBACK_CENTISECONDS": str(self.dice.writeback_centiseconds),
            "WRITEBACK_AGE": str(self.dice.writeback_age),
        }
        return Settings(
            pmem=self.system.pmem if self.system.name in ("forebay", "writelog") else 0, nvme=0, mem=1 << 30, kernel=self.system.kernel,
            persistence=self.system.persistence, keep=self.images, timeout=TIMEOUT, qemu=qemu, environment=environment)

    def _follow(self, machine):
        """Until the cut, or the guest's end. After a failure the rest is left undone."""
        outcome, mounting = self.outcome, 0.0
        for line in machine.lines():
            if line == "mounting":
                mounting = time.monotonic()
                if self.dice.in_recovery is not None:
                    time.sleep(self.dice.in_recovery)
                    machine.cut()
                    return
            if line == "mounted":
                outcome.mount_seconds = time.monotonic() - mounting
            if line == "dumped":
                outcome.checked = True
                self._violated(self.check.violations())
                if self.run and not self._fresh() and not outcome.failures:
                    self.plan(self.check)
            elif line == "drained":
                outcome.drained = True
                if self.system.name != "lower":
                    self._violated(self.check.drain_violations())
            elif line == "running":
                outcome.ran = True
                self._write_on()
                machine.cut()
            elif line.startswith("replayed "):
                outcome.replayed = int(line.split()[1])
            elif line.startswith("free "):
                outcome.free_pages.append(int(line.split()[1]))
            elif line.startswith("failed: "):
                outcome.failures.append(line)
                # A file system that can't be mounted or read breaks a promise, too.
                outcome.violations += self.check is not None and not outcome.checked
            if outcome.failures:
                return

    def _violated(self, texts):
        self.outcome.failures += texts
        self.outcome.violations += len(texts)

    def _write_on(self):
        """Waits seconds from the first operation on; on a busy host until enough operations are done."""
        dice, patience = self.dice, time.monotonic() + FIRST_PATIENCE
        first = None
        while not self.run.errors():
            done, now = sum(done for _, done, _ in self.run.progress()), time.monotonic()
            if done and first is None:
                first, patience = now, now + PATIENCE
            if now > patience or (first and now > first + dice.running and done >= dice.operations):
                return
            time.sleep(0.02)

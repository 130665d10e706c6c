# SPDX-License-Identifier: GPL-2.0-only
"""A write log over a device (perhaps slow, failing, tiny), set up as the tests of dm-forebay-writelog
need it."""

import os
import time
from pathlib import Path

from mapped import Target, noise, slow_device
from stack import PMEM, SSD, run

WRITES = int(os.environ.get("FOREBAY_OPS", "2000"))
STATE = "/tmp/verificator.state"
MIB = 1 << 20
NAME = "wl"
DEVICE = f"/dev/mapper/{NAME}"
BAD, BADS = 128, 8      # sectors that refusing() has
SLOWLY = [BAD + 64 * i for i in range(4)]       # sectors of blocks that refusing_slowly() has
SECONDS = 3             # that it takes to refuse one


class Log(Target):
    """The target over `origin`, its log on `cache`; both devices may be mapped ones."""
    module, kind, name = "dm-forebay-writelog", "forebay-wlog", NAME

    def __init__(self, mib=64, origin=SSD, cache=PMEM, sectors=None):
        super().__init__(sectors or mib * 2048)
        self.origin, self.cache = origin, cache

    def devices(self):
        """Origin and log."""
        return f"{self.origin} {self.cache}"

    def format(self, *options):
        """Makes an empty log."""
        run(f"forebay writelog format --force {' '.join(options)} {self.cache}")
        return self

    def status(self):
        """The status line."""
        return parse(run(f"dmsetup status {NAME}"))


def parse(line):
    """A status line as a dict."""
    words = line.split()[3:]
    used, generations = (int(n) for n in words[2].split("/"))
    assert int(words[4]) == len(words) - 5
    numbers = {key: int(value) for key, value in zip(words[5::2], words[6::2])}
    return {"health": words[0], "mode": words[1], "used": used, "generations_in_all": generations, **numbers}


def delayed(log, milliseconds):
    """Puts a delay on the origin's writes."""
    log.origin = slow_device(log.sectors, SSD, milliseconds)
    return log


def fill_generation(log, at=32 * MIB):
    """Overwrites 64 KiB in place until the log begins another generation, and once more: of the last
    write before, a part may be in the full generation."""
    begun = log.status()["generations"]
    while log.status()["generations"] == begun:
        log.write(at, noise(65536))
    log.write(at, noise(65536))


def drain_one(log):
    """Has the oldest generation written back, and no other."""
    status = log.status()
    used, total = status["used"], status["generations_in_all"]
    log.message(f"set low_mark {(used - 1) * 100 // total}")
    log.message(f"set high_mark {used * 100 // total}")
    deadline = time.monotonic() + 60
    while log.status()["used"] == used and time.monotonic() < deadline:
        time.sleep(0.02)
    log.message("set high_mark 99")
    log.message("set low_mark 98")
    assert log.status()["used"] == used - 1


def error_table(fails_now, sectors):
    """Makes the origin `bad` refuse all I/O, or none."""
    target = "error" if fails_now else f"linear {SSD} 0"
    run(f"dmsetup suspend --noflush --nolockfs bad; dmsetup load bad --table '0 {sectors} {target}'; dmsetup resume bad")


def refusing(log, target="error"):
    """Makes an origin `bad` that refuses a few sectors for good, or does with them what another target does."""
    table = [(0, BAD, f"linear {SSD} 0"), (BAD, BADS, target),
             (BAD + BADS, log.sectors - BAD - BADS, f"linear {SSD} {BAD + BADS}")]
    lines = "\n".join(f"{start} {length} {target}" for start, length, target in table)
    verb = "dmsetup suspend --noflush --nolockfs bad; dmsetup load" if Path("/dev/mapper/bad").exists() else "dmsetup create"
    run(f"echo '{lines}' | ({verb} bad); dmsetup resume bad; dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    return log


def refusing_slowly(log):
    """Makes an origin `bad` that takes some seconds to refuse each of a few blocks."""
    run("modprobe dm-delay")
    run(f"dmsetup create never --table '0 {BADS} error' && dmsetup mknodes")
    never = "/dev/mapper/never 0"
    run(f"dmsetup create slow --table '0 {BADS} delay {never} 0 {never} {SECONDS * 1000} {never} 0' && dmsetup mknodes")
    table, at = [], 0
    for bad in SLOWLY:
        table += [(at, bad - at, f"linear {SSD} {at}"), (bad, BADS, "linear /dev/mapper/slow 0")]
        at = bad + BADS
    table.append((at, log.sectors - at, f"linear {SSD} {at}"))
    lines = "\n".join(f"{start} {length} {target}" for start, length, target in table)
    run(f"echo '{lines}' | dmsetup create bad && dmsetup mknodes")
    log.origin = "/dev/mapper/bad"
    return log


def resolved(log):
    """Waits until no block is refused any more; refused blocks are tried again every few seconds."""
    for _ in range(300):
        if log.status()["health"] == "ok":
            break
        time.sleep(0.1)
    assert (log.status()["health"], log.status()["refused"]) == ("ok", 0), log.status()

# SPDX-License-Identifier: GPL-2.0-only
"""A write log over a device (perhaps slow, failing, tiny), set up as the tests of dm-forebay-writelog
need it."""

import os

from mapped import Target, slow_device
from stack import PMEM, SSD, run

WRITES = int(os.environ.get("FOREBAY_OPS", "2000"))
STATE = "/tmp/verificator.state"
MIB = 1 << 20
NAME = "wl"
DEVICE = f"/dev/mapper/{NAME}"


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

# SPDX-License-Identifier: GPL-2.0-only
"""A write log over a device (perhaps slow, failing, tiny), as the tests of dm-forebay-writelog set it up."""

import os
import subprocess
from pathlib import Path

from stack import PMEM, SSD, run

VERIFICATOR = Path(__file__).resolve().parents[2] / "build/tests/verificator"
NAME = "wl"
DEVICE = f"/dev/mapper/{NAME}"


class Log:
    """The target over `origin`, its log on `cache`; both devices may be mapped ones."""

    def __init__(self, mib=64, origin=SSD, cache=PMEM, sectors=None):
        self.origin, self.cache = origin, cache
        self.sectors = sectors or mib * 2048
        self.options = {}

    def format(self, *options):
        """An empty log."""
        run(f"forebay writelog format --force {' '.join(options)} {self.cache}")
        return self

    def table(self, **options):
        """The table line."""
        self.options = options or self.options
        words = [f"{key} {value}" for key, value in self.options.items()]
        return f"0 {self.sectors} forebay-wlog {self.origin} {self.cache} {2 * len(words)} {' '.join(words)}"

    def create(self, **options):
        """Maps it."""
        run(f"modprobe dm-forebay-writelog; dmsetup create {NAME} --table '{self.table(**options)}' && dmsetup mknodes")
        return self

    def remove(self):
        """Unmaps it; what is in the log stays there."""
        run(f"dmsetup remove --retry {NAME}")

    def again(self):
        """Unmaps and maps it: the log is replayed."""
        self.remove()
        return self.create()

    def message(self, text, check=True):
        """Sends a message."""
        return run(f"dmsetup message {NAME} 0 {text}", check)

    def status(self):
        """The status line."""
        return parse(run(f"dmsetup status {NAME}"))

    def write(self, offset, data):
        """Direct, or buffered and synced if it is not aligned."""
        with Device(DEVICE) as fd:
            os.pwrite(fd, data, offset)
            os.fsync(fd)

    def read(self, offset, length, device=DEVICE):
        """What the device has, caches dropped."""
        block = 4096 if offset % 4096 == length % 4096 == 0 else 512
        return run_bytes(f"dd if={device} bs={block} skip={offset // block} count={length // block} iflag=direct status=none")


class Device:
    """A device opened for buffered I/O."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.fd = os.open(self.path, os.O_RDWR)
        return self.fd

    def __exit__(self, *exception):
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(self.fd)


def parse(line):
    """A status line as a dict."""
    words = line.split()[3:]
    used, generations = (int(n) for n in words[2].split("/"))
    assert int(words[4]) == len(words) - 5
    numbers = {key: int(value) for key, value in zip(words[5::2], words[6::2])}
    return {"health": words[0], "mode": words[1], "used": used, "generations_in_all": generations, **numbers}


def run_bytes(command):
    """Its output as it is."""
    return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE).stdout


def verificator(command, check=True):
    """Runs it; what it says."""
    return run(f"{VERIFICATOR} {command}", check)


def small_device(name, mib, device, offset_mib=0):
    """A part of a device."""
    run(f"dmsetup create {name} --table '0 {mib * 2048} linear {device} {offset_mib * 2048}' && dmsetup mknodes")
    return f"/dev/mapper/{name}"

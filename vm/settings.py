# SPDX-License-Identifier: GPL-2.0-only
"""What a test machine is made of: its options, with their defaults, and where files are kept."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
BUILD = CHECKOUT / "build" / "vm"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forebay"

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class SetupError(Exception):
    """The machine cannot be started as asked; the message says what to do."""


def parse_size(text):
    """'512M' -> bytes. A bare number is bytes, as for truncate(1)."""
    match = re.fullmatch(r"(\d+)([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f"not a size: {text!r} (examples: 512M, 1G)")
    shift = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2].upper()]
    return int(match[1]) << shift


@dataclass
class Settings:
    pmem: int = GIB                  # bytes of each NVDIMM; 0: the machine has none
    nvdimms: tuple = (0,)            # in the order of their places: (1, 0) is (0, 1), swapped
    nvme: int = 8 * GIB              # bytes of each NVMe device
    nvme_count: int = 1
    cxl: bool = False                # the persistent memory is a CXL device, not an NVDIMM
    virtio_pmem: int = 0             # bytes of a PMem device that is not synchronous; none if 0
    mem: int = 4 * GIB
    smp: int = 2
    persistence: str = "mem-ctrl"    # or "cpu": which stores survive a power cut
    kernel: str = "stock"            # "stock", "debug" or the path of a kernel image
    raw_pmem: bool = False           # leave the namespace as the NVDIMM comes: raw, no struct pages
    timeout: float | None = None     # seconds until the machine is ended with status 124
    silence: float | None = None     # the same: seconds without output of the command
    keep: Path | None = None         # device images live here and survive
    append: str = ""                 # more kernel arguments
    qemu: list = field(default_factory=list)        # more arguments for QEMU: other devices
    expect_report: bool = False      # a kernel report does not make the run fail
    cwd: Path = field(default_factory=Path.cwd)
    environment: dict = field(default_factory=dict)

    def nvme_devices(self):
        return self.nvme_count if self.nvme else 0

    def is_debug(self):
        return self.kernel == "debug"

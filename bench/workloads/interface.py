# SPDX-License-Identifier: GPL-2.0-only
"""The two interfaces to storage, side by side (hybrid-storage-thesis 3.1, figure 3.2), and what processor time each GiB costs.

Random writes go by stores to a mapping of device-DAX memory or of a pinned file, each block flushed and fenced, or by io_uring,
direct, 8 in flight, to the SSD. Processor time is all that /proc/stat counts as busy, interrupts included, in a window within fio's own. The window leaves out
the start of fio and the first fault of each page.
"""

import os
import stat

from .dax import RAMP, on_mapping
from .fio import START, check_timed, lay_out, report_of

GIB, MIB = 1 << 30, 1 << 20
REGION_MIB = 64


def mapped_place(place: str) -> str:
    """A new file in a folder, or the device-DAX node itself."""
    if not os.path.isdir(place):
        return place
    lay_out(f"{place}/0", REGION_MIB)
    return f"{place}/0"


def writes(threads: int, block: int):
    """A block each, at random."""
    def measure(place: str, seconds: float) -> dict:
        if stat.S_ISBLK(os.stat(place).st_mode):
            how = ("--ioengine=io_uring", "--iodepth=8", "--direct=1", f"--filename={place}")
        else:
            how = (*on_mapping(mapped_place(place)), "--sync=1")
        report = report_of(*how, "--rw=randwrite", f"--bs={block}", f"--size={REGION_MIB}m", f"--numjobs={threads}", "--thread",
                           "--group_reporting", "--norandommap", "--gtod_reduce=1", "--invalidate=0",
                           seconds=seconds + START, ramp=RAMP, begin=START + RAMP)
        check_timed(report, seconds + START, write=block, jobs=threads, depth=8)
        each = report["cost"]
        return {"value": report["write"]["bw_bytes"] / MIB, "cpu_s_per_gib": each["cost_cpu_us"] / 1e6 * GIB / block, **each}
    return measure

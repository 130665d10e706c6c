# SPDX-License-Identifier: GPL-2.0-only
"""The two interfaces to storage, side by side (hybrid-storage-thesis 3.1, figure 3.2), and what processor time each GiB costs.

Random writes go by non-temporal stores to a DAX mapping of emulated memory, or by io_uring, direct, 8 in flight, to the SSD.
Processor time is all that /proc/stat counts as busy, interrupts included, in a window within fio's own. The window leaves out
the start of fio and the first fault of each page.
"""

import os
import stat

from ..commands import run
from .fio import START, check_timed, lay_out, report_of

GIB, MIB = 1 << 30, 1 << 20
REGION_MIB = 64
RAMP = 1.5              # seconds for the first fault of each page


def writes(threads: int, block: int):
    """A block each, at random."""
    def measure(place: str, seconds: float) -> dict:
        if stat.S_ISBLK(os.stat(place).st_mode):
            how = ("--ioengine=io_uring", "--iodepth=8", "--direct=1", f"--filename={place}")
        else:
            lay_out(f"{place}/0", REGION_MIB)
            run("forebay", "pin", f"{place}/0")
            how = ("--ioengine=libpmem", "--direct=1", "--sync=1", f"--filename={place}/0")
        report = report_of("--rw=randwrite", f"--bs={block}", f"--size={REGION_MIB}m", f"--numjobs={threads}", "--thread",
                           "--group_reporting", "--norandommap", "--gtod_reduce=1", "--invalidate=0", *how,
                           seconds=seconds + START, ramp=RAMP, begin=START + RAMP)
        check_timed(report, seconds + START, write=block, jobs=threads, depth=8)
        each = report["cost"]
        return {"value": report["write"]["bw_bytes"] / MIB, "cpu_s_per_gib": each["cost_cpu_us"] / 1e6 * GIB / block, **each}
    return measure

# SPDX-License-Identifier: GPL-2.0-only
"""The two interfaces to storage, side by side (hybrid-storage-thesis 3.1, figure 3.2), and what processor time each GiB costs.

Random writes go by non-temporal stores to a DAX mapping of emulated memory, or by io_uring, direct, 8 in flight, to the SSD.
Processor time is all that /proc/stat counts as busy, interrupts included, in a window within fio's own. The window leaves out
the start of fio and the first fault of each page.
"""

import os
import stat
import subprocess
import time

from ..commands import CommandFailed, run
from .fio import JOB, check_timed, lay_out, parse

GIB, MIB = 1 << 30, 1 << 20
REGION_MIB = 64
START = 1.0             # seconds that fio may take until all its jobs run
RAMP = 1.5              # seconds for the first fault of each page
BUSY = (0, 1, 2, 5, 6)  # fields of /proc/stat: user, nice, system, irq, softirq


def writes(threads: int, block: int):
    """A block each, at random."""
    def measure(place: str, seconds: float) -> dict:
        if stat.S_ISBLK(os.stat(place).st_mode):
            how = ("--ioengine=io_uring", "--iodepth=8", "--direct=1", f"--filename={place}")
        else:
            lay_out(f"{place}/0", REGION_MIB)
            run("forebay", "pin", f"{place}/0")
            how = ("--ioengine=libpmem", "--direct=1", "--sync=1", f"--filename={place}/0")
        report, busy = observed(seconds, f"--name={JOB}", "--rw=randwrite", f"--bs={block}", f"--size={REGION_MIB}m",
                                f"--numjobs={threads}", "--thread", "--group_reporting", "--norandommap", "--gtod_reduce=1",
                                "--invalidate=0", "--output-format=json", *how)
        check_timed(report, seconds + START, write=block, jobs=threads, depth=8)
        speed = report["write"]["bw_bytes"]
        return {"value": speed / MIB, "cpu_s_per_gib": busy * GIB / speed}
    return measure


def observed(seconds: float, *options: str) -> tuple[dict, float]:
    """What fio reports, and how many processors were busy meanwhile."""
    argv = ("fio", *options, "--time_based", *(f"--{name}={round(1000 * length)}ms" for name, length in
                                               (("ramp_time", RAMP), ("runtime", seconds + START))))
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as fio:
        time.sleep(START + RAMP)
        before = busy_seconds()
        time.sleep(seconds)
        busy = (busy_seconds() - before) / seconds
        output = fio.communicate(timeout=120)[0]
    if fio.returncode:
        raise CommandFailed(f"{' '.join(argv)}: status {fio.returncode}: {output[-2000:]}")
    return parse(output), busy


def busy_seconds() -> float:
    """Of all processors since the boot."""
    with open("/proc/stat") as file:
        fields = file.readline().split()[1:]
    return sum(int(fields[at]) for at in BUSY) / os.sysconf("SC_CLK_TCK")

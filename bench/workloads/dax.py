# SPDX-License-Identifier: GPL-2.0-only
"""fio with the engine of bench/fio-dax, which maps its file with MAP_SYNC where that is persistent memory, and pins it there
(hybrid-storage-thesis 4.4.2). Elsewhere the same engine maps as a program can there.
"""

import os
import stat

from .fio import check_syncs, check_timed, lay_out, read_all, report_of
from .memory import must_be_pmem
from .ranges import BIN, MIB

ENGINE = str(BIN / "fio-dax.so")
RAMP = 1.5              # seconds for the first fault of each page


def on_mapping(path: str, *how: str) -> tuple[str, ...]:
    """fio's options for the engine on a file or a device-DAX node; how it does that on persistent memory.

    The engine fails where it is to map with MAP_SYNC and can't.
    """
    dax = stat.S_ISCHR(os.stat(path).st_mode) or must_be_pmem(path)
    return (f"--ioengine=external:{ENGINE}", f"--filename={path}", *(("--dax=1", "--dax_pin=1", *how) if dax else ()))


def synced_blocks(block: int, threads: int, *how: str, mib: int = 128):
    """Random writes to a mapping, one sync a block (hybrid-storage-thesis 5.3), of a file in memory."""
    def measure(folder: str, seconds: float) -> dict:
        path = f"{folder}/0"
        lay_out(path, mib)
        read_all(path)
        report = report_of(*on_mapping(path, *how), f"--numjobs={threads}", "--thread", "--rw=randwrite", f"--bs={block}",
                           f"--size={mib}m", "--fsync=1", "--group_reporting", "--overwrite=1", "--invalidate=0",
                           seconds=seconds, ramp=RAMP, begin=RAMP + 0.5)
        check_syncs(report, 1)
        check_timed(report, seconds, write=block, jobs=threads)
        return {"value": report["write"]["bw_bytes"] / MIB, **report["cost"]}
    return measure

# SPDX-License-Identifier: GPL-2.0-only
"""Asynchronous I/O of one job (PMDK thesis 4.2, figure 8): fio, libaio, 8 in flight, 4 KiB.

Direct, as in the thesis, but on tmpfs, which it has buffered.
"""

import os

from ..commands import run
from ..systems import PINNED
from .fio import check_timed, lay_out, report_of
from .ranges import in_pmem

MIB = 1 << 20
DEPTH = 8
FILE_MIB = 256
TMPFS = "1021994"


def asynchronous(rw: str, mib: int = FILE_MIB):
    """MiB/s."""
    def measure(folder: str, seconds: float) -> dict:
        path = f"{folder}/0"
        lay_out(path, mib)
        if os.environ.get(PINNED):
            in_pmem(path)
        direct = run("stat", "-f", "-c", "%t", folder).strip() != TMPFS
        report = report_of(f"--filename={path}", "--ioengine=libaio", f"--iodepth={DEPTH}", f"--direct={direct:d}", f"--rw={rw}",
                           "--bs=4k", f"--size={mib}m", "--norandommap", "--invalidate=0", seconds=seconds)
        kind = "write" if "write" in rw else "read"
        check_timed(report, seconds, **{kind: 4096}, depth=DEPTH)
        check_depth(report)
        return {"value": report[kind]["bw_bytes"] / MIB, "mean_us": report[kind]["lat_ns"]["mean"] / 1000,
                **report["cost"]}
    return measure


def check_depth(report: dict) -> None:
    """fio had as many in flight as asked for, most of the time: its own table of depths, in percent."""
    if report["iodepth_level"][str(DEPTH)] < 90:
        raise ValueError(f"fio was to have {DEPTH} in flight, and had {report['iodepth_level']}")

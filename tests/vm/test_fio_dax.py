# SPDX-License-Identifier: GPL-2.0-only
"""fio's engine of bench/fio-dax, where files are persistent memory. On files that aren't: tests/bench/test_dax.py; through a
power cut: tests/boots.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import clean_up
from libc import info, pages
from stack import PMEM, run

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import systems               # noqa: E402
from bench.workloads.dax import ENGINE  # noqa: E402

MIB = 1 << 20
JOB = "fio --name=job --size=4m --bs=4k --rw=randwrite --verify=crc32c --verify_state_save=0"
ON_ENGINE = f"--ioengine=external:{ENGINE}"


def test_a_device_dax_node():
    """Both directions, by another engine of fio for such nodes, too; the jobs of two threads don't meet."""
    clean_up()
    with systems.devdax() as node:
        run(f"{JOB} --filename={node} {ON_ENGINE} --dax=1 --dax_pin=1 --fsync=4 --do_verify=0")
        run(f"{JOB} --filename={node} --ioengine=dev-dax --verify_only")
        run(f"{JOB} --filename={node} {ON_ENGINE} --dax=1 --offset_increment=4m --numjobs=2 --thread --fdatasync=1")
        done = subprocess.run(f"{JOB} --filename={node} {ON_ENGINE} --dax=1 --offset=1g", shell=True, check=False,
                              stdout=subprocess.PIPE, text=True)
        assert done.returncode, "an offset behind the end"
        done = subprocess.run(f"{JOB} --filename={node} {ON_ENGINE} --dax=1 --dax_msync=1 --fsync=1", shell=True, check=False,
                              stdout=subprocess.PIPE, text=True)
        assert done.returncode and "dax_queue" in done.stdout, "a device has no msync()"
    assert Path(PMEM).is_block_device()


@pytest.mark.parametrize("options", ["--dax=1 --fsync=1", "--dax=1 --dax_pin=1 --sync=1", "--dax=1 --dax_pin=1 --dax_msync=1 --fsync=1",
                                     "--dax_pin=1 --fsync=16"])
def test_on_forebay(folder, options):
    """Calls read what a mapping has written. A MAP_SYNC mapping and a pin bring every page into PMem."""
    run(f"{JOB} --filename={folder}/f {ON_ENGINE} {options} --do_verify=0")
    with open(folder / "f", "rb") as file:
        assert pages(file.fileno()) == 4 * MIB // 4096
        assert info(file.fileno()).pinned == 0, "a pin ends with the job"
    run(f"{JOB} --filename={folder}/f --ioengine=psync --invalidate=0 --verify_only")
    run(f"{JOB} --filename={folder}/f {ON_ENGINE} {options} --verify_only")


def test_dax_pin_pins(folder):
    """As long as the job runs; the job's part of the file, and no more."""
    (folder / "f").write_bytes(bytes(8 * MIB))
    with subprocess.Popen(["sh", "-c", f"exec {JOB} --filename={folder}/f --offset=2m {ON_ENGINE} --dax=1 --dax_pin=1 --time_based "
                           "--runtime=60"], stdout=subprocess.DEVNULL) as job, open(folder / "f", "rb") as file:
        try:
            deadline = time.monotonic() + 40
            while info(file.fileno()).pinned != 4 * MIB // 4096 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert info(file.fileno()).pinned == info(file.fileno(), 2 * MIB, 4 * MIB).pinned == 4 * MIB // 4096
        finally:
            job.terminate()


def test_threads_of_a_job_share_a_pin(folder):
    """Forebay counts the pins of each descriptor: those of four would be over its limit, half of a cache of 64 MiB."""
    (folder / "f").write_bytes(bytes(12 * MIB))
    run(f"fio --name=job --filename={folder}/f --size=12m --bs=64k --rw=randwrite --numjobs=4 --thread {ON_ENGINE} --dax=1 --dax_pin=1")
    with open(folder / "f", "rb") as file:
        assert info(file.fileno()).pinned == 0 and pages(file.fileno()) == 12 * MIB // 4096


def test_no_dax_below(below):
    """MAP_SYNC on the lower file system fails, and isn't replaced by another mapping."""
    done = subprocess.run(f"{JOB} --filename={below}/g {ON_ENGINE} --dax=1", shell=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode and "mmap with MAP_SYNC" in done.stdout

# SPDX-License-Identifier: GPL-2.0-only
"""fio's engine of bench/fio-dax on the host's own file system, which is no DAX. In the guest: tests/vm/test_fio_dax.py."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import engine
from bench.workloads import dax

MIB = 1 << 20
pytestmark = pytest.mark.skipif(not shutil.which("fio"), reason="no fio")


@pytest.fixture(autouse=True, scope="module")
def engine_fixture():
    engine.make()


def fio(path, *options):
    """One pass over 4 MiB in another order than that of the file."""
    return subprocess.run(["fio", "--name=job", f"--filename={path}", "--size=4m", "--bs=4k", "--rw=randwrite", "--verify=crc32c",
                           "--verify_state_save=0", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def on(*options):
    return f"--ioengine=external:{dax.ENGINE}", *options


def calls(path, *options):
    return fio(path, "--ioengine=psync", *options)


def test_each_reads_what_the_other_has_written(tmp_path):
    assert fio(tmp_path / "f", *on("--fsync=8", "--do_verify=0")).returncode == 0
    assert calls(tmp_path / "f", "--verify_only").returncode == 0
    assert calls(tmp_path / "g", "--do_verify=0").returncode == 0
    assert fio(tmp_path / "g", *on("--verify_only")).returncode == 0


def test_a_wrong_byte_is_seen(tmp_path):
    assert fio(tmp_path / "f", *on()).returncode == 0
    with open(tmp_path / "f", "r+b") as file:
        file.seek(MIB + 2345)
        byte = file.read(1)[0]
        file.seek(MIB + 2345)
        file.write(bytes([byte ^ 1]))
    done = fio(tmp_path / "f", *on("--verify_only"))
    assert done.returncode and f"offset {MIB}," in done.stdout


def test_a_part_of_a_file(tmp_path):
    """The job's part is written, and nothing else."""
    (tmp_path / "f").write_bytes(b"\xff" * 12 * MIB)
    assert fio(tmp_path / "f", *on("--offset=4m", "--dax_pin=1")).returncode == 0
    data = (tmp_path / "f").read_bytes()
    assert len(data) == 12 * MIB and set(data[:4 * MIB]) == set(data[8 * MIB:]) == {255}
    assert calls(tmp_path / "f", "--offset=4m", "--verify_only").returncode == 0


@pytest.mark.parametrize("option", ["--dax=1", "--dax_msync=1 --dax=1"])
def test_no_other_mapping_than_the_one_asked_for(option, tmp_path):
    done = fio(tmp_path / "f", *on(*option.split()))
    assert done.returncode and "mmap with MAP_SYNC" in done.stdout


def test_what_is_no_memory(tmp_path):
    """A character device that is none of DAX, and a file of no bytes."""
    assert fio("/dev/zero", *on()).returncode
    (tmp_path / "f").write_bytes(b"")
    assert fio(tmp_path / "f", *on("--size=0", "--rw=read", "--verify=0")).returncode


def test_dax_pin_locks_the_mapping(tmp_path):
    with subprocess.Popen(["fio", "--name=job", f"--filename={tmp_path}/f", "--size=4m", "--rw=write", "--thread", "--time_based",
                           "--runtime=60", *on("--dax_pin=1")], stdout=subprocess.PIPE) as job:
        status = Path(f"/proc/{job.pid}/status")
        try:
            while not (locked := int(re.search(r"VmLck:\s*(\d+)", status.read_text())[1])):
                assert job.poll() is None
        finally:
            job.terminate()
    assert locked == 4096


def test_a_workload(tmp_path):
    assert dax.synced_blocks(4096, 2, mib=1)(str(tmp_path), 0.3)["value"] > 0

# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-writelog: acknowledged writes are there, in the order of their acknowledgment. They are read
from the log and from the origin, and after a replay."""

import os
import subprocess
from pathlib import Path

import pytest
from mapped import VERIFICATOR, noise, small_device, verificator
from stack import PMEM, SSD, block_name, run
from writelog import DEVICE, MIB, STATE, WRITES, delayed

pytestmark = pytest.mark.persistence


def test_written_is_read(log):
    """From the log, from the origin, from both in one read."""
    log.create()
    log.write(0, noise(4 * MIB))
    log.message("flush")
    assert log.status()["used"] == 0
    log.write(MIB, noise(8192, 2))
    log.write(MIB + 65536, noise(512, 3))
    expected = bytearray(noise(4 * MIB))
    expected[MIB:MIB + 8192] = noise(8192, 2)
    expected[MIB + 65536:MIB + 65536 + 512] = noise(512, 3)
    assert log.read(0, 4 * MIB) == expected
    assert 0 < log.status()["read_hit_sectors"] < 8 * 2048
    assert log.read(0, 4 * MIB, device=SSD) == noise(4 * MIB)
    log.message("flush")
    assert log.read(0, 4 * MIB, device=SSD) == expected


def test_no_write_cache_is_advertised(log):
    """A write that has completed is durable: no flush comes down, and none goes to the origin."""
    log.create()
    assert Path(f"/sys/block/{block_name(DEVICE)}/queue/write_cache").read_text().strip() == "write through"
    before = flushes(SSD)
    for i in range(50):
        log.write(i * 4096, noise(4096, i))
    assert flushes(SSD) == before


def flushes(device):
    """How many a device has had."""
    return int(Path(f"/sys/block/{os.path.basename(device)}/stat").read_text(encoding="ascii").split()[15])


def test_dirty_log_is_replayed(log):
    """Removes a dirty log and creates it again, several times: all data are there."""
    log.create(high_mark=99, low_mark=98)
    log.write(0, noise(6 * MIB))
    for life in range(3):
        log.again()
        assert log.status()["used"] > 0
        assert log.read(0, 6 * MIB) == noise(6 * MIB)
        log.write(life * 4096, noise(4096, 1) if not life else noise(6 * MIB)[life * 4096:life * 4096 + 4096])
    log.message("flush")
    log.again()
    assert log.status()["regions"] == 0
    assert log.read(0, 6 * MIB) == noise(6 * MIB)


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("least, most", [(512, MIB), (4096, 65536)])
def test_overlapping_writes(log, delay, least, most):
    """6 threads write to a 1 MiB origin beside readers; then the same through replay."""
    log.sectors = 2048
    if delay:
        delayed(log, delay)
    log.create()
    print(verificator(f"run {DEVICE} {MIB} {delay + least} {WRITES} 6 2 {least} {most} {STATE}"))
    print(log.status())
    verificator(f"check {DEVICE} {STATE}")
    log.again()
    verificator(f"check {DEVICE} {STATE}")
    log.message("flush")
    verificator(f"check {SSD} {STATE}")


def test_replay_without_writeback(log):
    """As in the thesis, nothing is written back until the log is nearly full; replay must keep the
    order."""
    log.cache = small_device("other", 40, PMEM, 20)
    log.format().sectors = 2048
    log.create(high_mark=99, low_mark=98)
    verificator(f"run {DEVICE} {MIB} 77 {min(WRITES, 400)} 6 0 512 65536 {STATE}")
    assert log.status()["writeback_sectors"] == 0
    assert "sector" in verificator(f"check {SSD} {STATE}", check=False)
    log.again()
    verificator(f"check {DEVICE} {STATE}")


def test_verificator_notices(log):
    """The checker can fail: it must notice wrong contents."""
    log.sectors = 2048
    log.create()
    verificator(f"run {DEVICE} {MIB} 5 1000 2 0 512 65536 {STATE}")
    log.write(MIB // 2, bytes(512))
    log.write(4096, noise(512))
    assert verificator(f"check {DEVICE} {STATE}", check=False).count("sector") >= 2


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_file_system(log, fs):
    """fsync of single bytes, a tree of files, fsck; the log small enough to be full again and again."""
    log.sectors = 400 * 2048
    log.create()
    run(f"mkfs.{fs} {'-Fq' if fs == 'ext4' else '-fq'} {DEVICE}")
    Path("/mnt/wl").mkdir(parents=True, exist_ok=True)
    run(f"mount {DEVICE} /mnt/wl")
    try:
        workers = [subprocess.Popen([str(VERIFICATOR), "bytes", f"/mnt/wl/{i}", "65536", str(i), "300"]) for i in range(4)]
        for i in range(40):
            Path(f"/mnt/wl/f{i}").write_bytes(noise(1 << 19, i))
        assert [worker.wait() for worker in workers] == [0] * 4
        os.sync()
    finally:
        run("umount /mnt/wl")
    run("e2fsck -fn " + DEVICE if fs == "ext4" else "xfs_repair -n " + DEVICE)
    log.again()
    run("echo 3 >/proc/sys/vm/drop_caches")
    run(f"mount {DEVICE} /mnt/wl")
    try:
        for i in range(40):
            assert Path(f"/mnt/wl/f{i}").read_bytes() == noise(1 << 19, i)
    finally:
        run("umount /mnt/wl")
    log.message("flush")
    log.remove()
    run("e2fsck -fn " + SSD if fs == "ext4" else "xfs_repair -n " + SSD)

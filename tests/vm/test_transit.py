# SPDX-License-Identifier: GPL-2.0-only
"""dm-forebay-transit: under every policy, blocks are whole and in order. What was written is read, and is
below in the end."""

import errno
import mmap
import os
import subprocess
import time
from pathlib import Path

import pytest
from mapped import DEBUG, VERIFICATOR, noise, slow_device, verificator
from stack import SSD, block_name, run
from transit import BLOCK, MIB, POLICIES, STAGED, STATE, VARIANTS, WRITES, btt, each


def delayed(cache, milliseconds):
    """Puts a delay on the writes of the device below."""
    cache.below = slow_device(cache.sectors, cache.below, milliseconds)
    return cache


def test_it_is_a_write_cache(over_btt):
    """The block layer must know that it is to be flushed, though a BTT itself needs no flush."""
    over_btt.create()
    queue = Path(f"/sys/block/{block_name(over_btt.device)}/queue")
    said = {name: (queue / name).read_text(encoding="ascii").strip() for name in ("write_cache", "fua", "logical_block_size")}
    assert said == {"write_cache": "write back", "fua": "1", "logical_block_size": "4096"}


def test_buffers_over_a_btt(over_btt):
    """A BTT takes no segment smaller than a block. Buffers with such segments are refused, even where
    the cache could take them."""
    over_btt.create(block_size=BLOCK, cache_size="64K")
    page = mmap.mmap(-1, 3 * BLOCK)
    page[:] = noise(3 * BLOCK)
    for flags in (0, os.O_DSYNC):
        fd = os.open(over_btt.device, os.O_RDWR | os.O_DIRECT | flags)
        try:
            with pytest.raises(OSError) as refused:
                os.pwrite(fd, memoryview(page)[512:512 + BLOCK], 0)
            assert refused.value.errno == errno.EINVAL
            assert os.pwrite(fd, memoryview(page)[BLOCK:], 0) == 2 * BLOCK
        finally:
            os.close(fd)
    assert over_btt.read(0, 2 * BLOCK) == noise(3 * BLOCK)[BLOCK:]


def reads_go_on(cache):
    """Waits until the slots have answered some more reads."""
    before, until = cache.status()["read_hits"], time.monotonic() + 30
    while cache.status()["read_hits"] < before + 100:
        assert time.monotonic() < until, cache.status()
        time.sleep(0.1)


def test_steady_readers(cache):
    """A writer keeps new readers out of its slot, and lets them in again.

    The test can't show that readers would hold up the writer for ever: that takes more processors than a
    test machine has. With two, a reader that isn't running decides how long all this takes.
    """
    cache.create(block_size=BLOCK, cache_size=MIB, **STAGED)
    cache.put(0, noise(65536))
    readers = subprocess.Popen(f"exec fio --name=x --filename={cache.device} --rw=read --bs=64k --size=64k --direct=1 --ioengine=psync "
                               "--numjobs=4 --thread --time_based --runtime=300 >/dev/null", shell=True)
    try:
        reads_go_on(cache)
        begun = time.monotonic()
        for i in range(10):
            cache.put(0, noise(65536, i))
        assert time.monotonic() - begun < 30
        reads_go_on(cache)
        run(f"blkdiscard -l 65536 {cache.device}")
        assert cache.status()["used"] == 0
        assert readers.poll() is None
    finally:
        readers.terminate()
        readers.wait()


@pytest.mark.parametrize("block", [512, 4096])
@pytest.mark.parametrize("on_btt", [True, False])
def test_written_is_read(cache, on_btt, block):
    """From slots, from the device, from both in one read."""
    cache.below = btt(block) if on_btt else SSD
    cache.create(block_size=block, cache_size=MIB, **STAGED)
    assert int(run(f"blockdev --getss {cache.device}")) == block
    cache.write(0, noise(4 * MIB))
    assert cache.status()["used"] == 0
    cache.put(MIB, noise(8192, 2))
    cache.put(MIB + 65536 + block, noise(block, 3))
    expected = bytearray(noise(4 * MIB))
    expected[MIB:MIB + 8192] = noise(8192, 2)
    expected[MIB + 65536 + block:MIB + 65536 + 2 * block] = noise(block, 3)
    assert cache.status()["used"] == 8192 // block + 1
    before = cache.status()["read_hits"]
    assert cache.read(0, 4 * MIB) == expected
    assert cache.status()["read_hits"] - before == 8192 // block + 1
    assert cache.read(0, 4 * MIB, device=cache.below) == noise(4 * MIB)
    cache.remove()
    assert cache.read(0, 4 * MIB, device=cache.below) == expected


@each(VARIANTS)
@pytest.mark.parametrize("on_btt", [True, False])
def test_overlapping_writes(cache, options, on_btt):
    """6 threads write 2 MiB through a cache of 256 KiB, beside readers. Blocks are whole and in order."""
    cache.below = btt() if on_btt else SSD
    cache.create(cache_size="256K", block_size=BLOCK, **options)
    print(verificator(f"{'whole' if on_btt else 'mixed'} {cache.device} {2 * MIB} 5 {WRITES} 6 2 {BLOCK} 131072 {STATE}"))
    print(cache.status())
    verificator(f"check {cache.device} {STATE}")
    cache.remove()
    verificator(f"check {cache.below} {STATE}")


@pytest.mark.slow
@each(VARIANTS[:-4])
def test_overlapping_small_blocks(cache, options):
    """The same with blocks of 512 bytes on a BTT."""
    cache.below = btt(512)
    cache.create(cache_size="64K", block_size=512, **options)
    verificator(f"whole {cache.device} {MIB} 6 {WRITES} 6 2 512 65536 {STATE}")
    cache.remove()
    verificator(f"check {cache.below} {STATE}")


@each(VARIANTS)
def test_same_blocks(over_btt, options):
    """Eight writers and four readers at eight blocks: most writes hit a slot that is in use."""
    over_btt.create(cache_size="16K", block_size=BLOCK, **options)
    verificator(f"whole {over_btt.device} 32768 7 {2 * WRITES} 8 4 {BLOCK} 8192 {STATE}")
    if options.get("policy") != "none":
        assert over_btt.status()["write_hits"] > 0
    over_btt.remove()
    verificator(f"check {over_btt.below} {STATE}")


def test_same_blocks_on_a_slow_device(cache):
    """Evictions that take long, so that writers and readers meet them."""
    cache.sectors = 2048
    delayed(cache, 20 if DEBUG else 4).create(cache_size="64K", block_size=BLOCK)
    verificator(f"mixed {cache.device} 131072 8 {max(WRITES // 4, 150)} 8 4 {BLOCK} 16384 {STATE}")
    status = cache.status()
    assert status["bypassed"] > 0 and status["read_hits"] > 0 and status["write_hits"] > 0, status
    cache.remove()
    verificator(f"check {SSD} {STATE}")


def test_whole_is_noticed(cache):
    """The checker can fail: writes of 8 KiB to the NVMe device are no whole."""
    cache.create(block_size=BLOCK)
    verificator(f"run {cache.device} {MIB} 5 500 2 0 {BLOCK} 65536 {STATE}")
    cache.write(MIB // 2 + 512, noise(512))
    assert "sector" in verificator(f"check {cache.device} {STATE}", check=False)


@pytest.mark.slow
@each(VARIANTS)
def test_fio_verify(over_btt, options):
    """Mixed sizes, depths and jobs, direct and asynchronous, with fio's own checksums."""
    over_btt.create(cache_size="1M", block_size=BLOCK, **options)
    for jobs, depth, sizes in ((1, 1, "4k-4k"), (2, 16, "4k-64k"), (4, 64, "4k-128k")):
        run(f"fio --name=x --filename={over_btt.device} --direct=1 --ioengine=libaio --rw=randwrite --bsrange={sizes} "
            f"--blockalign=4k --iodepth={depth} --numjobs={jobs} --size=2m --offset_increment=2m --verify=crc32c "
            "--do_verify=1 --verify_fatal=1 --fsync=64")


@each([{"policy": name} for name in POLICIES])
@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_file_system(cache, options, fs):
    """fsync of single bytes beside a tree of files; fsck; also below, when the target has gone."""
    cache.sectors = 400 * 2048
    cache.create(cache_size="2M", block_size=BLOCK, **options)
    run(f"mkfs.{fs} {'-Fq' if fs == 'ext4' else '-fqK'} {cache.device}")
    folder = Path("/mnt/tc")
    folder.mkdir(parents=True, exist_ok=True)
    run(f"mount {cache.device} {folder}")
    try:
        workers = [subprocess.Popen([VERIFICATOR, "bytes", folder / str(i), "65536", str(i), str(WRITES // 20)]) for i in range(3)]
        for i in range(24):
            (folder / f"f{i}").write_bytes(noise(1 << 19, i))
        assert [worker.wait() for worker in workers] == [0] * 3
        run(f"fstrim {folder}")
    finally:
        run(f"umount {folder}")
    cache.remove()
    run("e2fsck -fn " + SSD if fs == "ext4" else "xfs_repair -n " + SSD)
    run(f"mount {SSD} {folder}")
    try:
        assert all((folder / f"f{i}").read_bytes() == noise(1 << 19, i) for i in range(24))
    finally:
        run(f"umount {folder}")

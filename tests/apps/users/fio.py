# SPDX-License-Identifier: GPL-2.0-only
"""fio --verify by several engines, with syncs between. Verified once more from what a drain has written
to the disk."""

from pathlib import Path

from place import call, expect

# Name: engine, and what is particular about the job.
JOBS = {
    "random-fdatasync": ["--ioengine=psync", "--rw=randwrite", "--fdatasync=1"],
    "uneven": ["--ioengine=psync", "--rw=randwrite", "--bsrange=512-20k", "--bs_unaligned", "--fsync=4"],
    "append": ["--ioengine=psync", "--rw=write", "--bs=1000", "--fdatasync=3"],
    "o-sync": ["--ioengine=pvsync2", "--rw=randwrite", "--sync=dsync"],
    "mapped": ["--ioengine=mmap", "--rw=randwrite", "--fsync=8"],
    "direct": ["--ioengine=libaio", "--direct=1", "--rw=randwrite", "--iodepth=8"],
    "buffered-aio": ["--ioengine=libaio", "--rw=randwrite", "--iodepth=8", "--fsync=16"],
    "uring": ["--ioengine=io_uring", "--rw=randwrite", "--iodepth=8", "--fdatasync=4"],
    "uring-direct": ["--ioengine=io_uring", "--direct=1", "--rw=randwrite", "--iodepth=8", "--fdatasync=16"],
    "range-sync": ["--ioengine=sync", "--rw=write", "--sync_file_range=write:4"],
    "falloc": ["--ioengine=sync", "--rw=randwrite", "--fallocate=keep", "--fdatasync=2"],
}


def run(place):
    size = place.size("2m", "512k")
    call("fio", "--do_verify=1", *command(place, size), timeout=300)
    call("forebay", "drain", place.folder.parent)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    call("fio", "--verify_only", *command(place, size), timeout=300)
    expect(len(list(place.folder.glob("*.data"))) == len(JOBS), "files are missing")


def command(place, size):
    """All jobs, one after the other."""
    words = []
    for name, particular in JOBS.items():
        words += [f"--name={name}", f"--filename={place.folder / name}.data", "--stonewall", f"--size={size}", "--verify=crc32c",
                  "--verify_fatal=1", "--randrepeat=1", "--thread", "--verify_state_save=0", *particular]
    return words

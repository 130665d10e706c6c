# SPDX-License-Identifier: GPL-2.0-only
"""What a sync call costs and where pages are afterwards: the states of the design, seen through sysfs
and the SSD's counters."""

import mmap
import os
import resource
import subprocess
import time
from pathlib import Path

import pytest
from libc import MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, info, store_and_hold, syncfs, syscall
from stack import LOWER, MOUNT, PAGE, drop_caches, run, small_cache

SYNC_FILE_RANGE, WAIT_BEFORE_WRITE_AND_WAIT_AFTER = 277, 7


def counts(fd):
    """Clean, out-of-sync and dirty pages of a file."""
    found = info(fd)
    return found.clean, found.out_of_sync, found.dirty


def settled_file(folder, pages=64):
    """An open file whose name and contents are durable below."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"0" * pages * PAGE, 0)
    os.fsync(fd)
    run(f"forebay drain {folder}")
    os.sync()
    return fd


def test_msync_of_a_program_that_runs_below(shared):
    """The lower file can't be opened for writing then, which msync() doesn't need."""
    with open(MOUNT / "sleep", "wb") as file:
        file.write(Path("/bin/sleep").read_bytes())
    os.chmod(MOUNT / "sleep", 0o755)
    shared.umount()     # the file's record has the lower file open for writing
    shared.mount()
    with subprocess.Popen([LOWER / "sleep", "60"]) as program, open(MOUNT / "sleep", "rb") as file:
        try:
            with Mapping(file.fileno(), PAGE, MAP_SHARED, mmap.PROT_READ) as mapping:
                mapping.sync()
        finally:
            program.kill()
    os.unlink(MOUNT / "sleep")


@pytest.mark.persistence
def test_small_syncs_stay_off_the_disk(folder, shared):
    fd = settled_file(folder)
    absorbed, moved, below = (shared.value(n) for n in ("syncs_absorbed", "pages_absorbed", "syncs_lower"))
    writes = shared.writes()
    for i in range(200):
        os.pwrite(fd, b"x" * 100, (i % 40) * PAGE)
        os.fdatasync(fd)
    assert shared.value("syncs_absorbed") == absorbed + 200
    assert shared.value("pages_absorbed") == moved + 40
    assert shared.value("syncs_lower") == below
    assert shared.writes() - writes < 10, "no write and no flush of the SSD, but for what is in the background"
    assert counts(fd)[1] == 40
    os.close(fd)


def timed(stack):
    """Sync calls counted by what they waited for, and their time in all."""
    shown = [(stack.sysfs / f"sync_latency_{kind}").read_text(encoding="ascii").split() for kind in ("memory", "move", "storage")]
    return [sum(int(part.split(":")[1]) for part in bins) for _, *bins in shown], sum(int(ns) for ns, *_ in shown)


def test_latencies_by_what_a_sync_waits_for(folder, shared):
    """A sync of what is in PMem, one that moves pages, one that storage has to do; the times add up."""
    fd = settled_file(folder)
    (memory, move, storage), ns = timed(shared)
    begun = time.monotonic_ns()
    for _ in range(10):
        os.fdatasync(fd)
    for page in range(5):
        os.pwrite(fd, b"x" * 100, page * PAGE)
        os.fdatasync(fd)
    for mode in (0o600, 0o640, 0o644):
        os.fchmod(fd, mode)
        os.fsync(fd)
    took = time.monotonic_ns() - begun
    counted, ns_after = timed(shared)
    assert counted == [memory + 10, move + 5, storage + 3]
    assert 0 < ns_after - ns < took
    os.close(fd)


@pytest.mark.persistence
def test_appends(folder, shared):
    """An append and a sync commit nothing below, when the file is known there."""
    fd = settled_file(folder, 1)
    os.lseek(fd, 0, os.SEEK_END)
    os.write(fd, b"a" * 100)
    os.fdatasync(fd)
    below = shared.value("syncs_lower")
    for _ in range(100):
        os.write(fd, b"b" * 1000)
        os.fdatasync(fd)
    assert shared.value("syncs_lower") == below
    size = os.fstat(fd).st_size
    os.close(fd)
    shared.remount()
    assert os.stat(LOWER / folder.name / "f").st_size == size


def test_sync_of_more_than_there_is_room_for_goes_below(folder, shared):
    fd = settled_file(folder)
    below, moved = shared.value("syncs_lower"), shared.value("pages_absorbed")
    os.pwrite(fd, b"pages" * (shared.value("pages_total") * PAGE // 10), 0)
    os.fsync(fd)
    assert shared.value("syncs_lower") == below + 1
    assert shared.value("pages_absorbed") == moved
    assert counts(fd) == (0, 0, 0)
    os.close(fd)


def test_what_the_lower_owes(folder, shared):
    """A new name or another mode is committed below once."""
    fd = os.open(folder / "new", os.O_RDWR | os.O_CREAT)
    for change, datasync in ((lambda: os.write(fd, b"x"), True), (lambda: os.rename(folder / "new", folder / "newer"), True),
                             (lambda: os.fchmod(fd, 0o600), False), (lambda: os.link(folder / "newer", folder / "l"), True),
                             (lambda: os.ftruncate(fd, 0), True)):
        change()
        below = shared.value("syncs_lower")
        (os.fdatasync if datasync else os.fsync)(fd)
        assert shared.value("syncs_lower") == below + 1
        (os.fdatasync if datasync else os.fsync)(fd)
        assert shared.value("syncs_lower") == below + 1
    os.close(fd)


def test_fsync_after_fdatasync_of_a_name(folder, shared):
    """ext4's fdatasync leaves a new link out: a later fsync must not take the link for durable."""
    fd = settled_file(folder, 1)
    for change in (lambda: os.link(folder / "f", folder / "l"), lambda: os.rename(folder / "f", folder / "g")):
        change()
        below = shared.value("syncs_lower")
        os.fdatasync(fd)
        os.fsync(fd)
        assert shared.value("syncs_lower") == below + 2
        os.fsync(fd)
        assert shared.value("syncs_lower") == below + 2
    os.close(fd)


@pytest.mark.persistence
def test_mapped_stores(folder, shared):
    """A MAP_SYNC mapping has DAX pages at once. Where CPU caches are volatile, fsync finds the dirty
    pages."""
    fd = settled_file(folder)
    volatile = (shared.sysfs / "persistence").read_text(encoding="ascii").strip() == "memory-controller"
    with Mapping(fd, 64 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        mapping.read(0, PAGE)
        for page in range(8):
            mapping.write(page * PAGE, b"stored")
        clean, out_of_sync, dirty = counts(fd)
        assert clean + out_of_sync >= 8
        assert dirty == (8 if volatile else 0)
        writes = shared.writes()
        mapping.sync(3 * PAGE, 2 * PAGE)
        assert counts(fd)[2] == (6 if volatile else 0), "of the others nobody has asked"
        mapping.sync()
        assert shared.writes() - writes < 10
        assert counts(fd)[2] == 0
        mapping.write(0, b"again")
        assert counts(fd)[2] == (1 if volatile else 0)
    os.fsync(fd)
    assert os.pread(fd, 5, 0) == b"again"
    os.close(fd)


@pytest.mark.persistence
def test_page_stored_to_at_every_sync(folder, shared):
    """Such a page stays mapped over most syncs. It loses its mappings when it is no longer stored to, or written back."""
    fd = settled_file(folder)
    volatile = (shared.sysfs / "persistence").read_text(encoding="ascii").strip() == "memory-controller"
    rounds = 400
    with Mapping(fd, 64 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        mapping.write(0, b"0000")
        mapping.sync(0, PAGE)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for n in range(rounds):
            mapping.write(0, b"%4d" % n)
            mapping.sync(0, PAGE)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        assert faults < rounds // 4
        for _ in range(65):
            mapping.sync()
        assert counts(fd)[2] == 0
        mapping.write(0, b"last")
        assert counts(fd)[2] == (1 if volatile else 0)
        run(f"forebay drain {folder}")
        assert counts(fd)[1:] == (0, 0)
        assert (LOWER / folder.relative_to(MOUNT) / "f").read_bytes()[:4] == b"last"
        mapping.write(0, b"more")
        assert counts(fd)[1] == 1
        mapping.sync()
    assert os.pread(fd, 4, 0) == b"more"
    os.close(fd)


def test_sync_file_range_does_nothing(folder, shared):
    """sync_file_range() makes nothing durable, as docs/semantics.md says: the next sync call has as much
    to do as before it."""
    fd = settled_file(folder)
    with Mapping(fd, 8 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        mapping.write(0, b"stored")
        for page in range(20, 24):
            os.pwrite(fd, b"written", page * PAGE)
        names = "syncs_absorbed", "syncs_lower", "pages_absorbed", "pages_written_back"
        before, dirty, writes = [shared.value(n) for n in names], counts(fd), shared.writes()
        syscall(SYNC_FILE_RANGE, fd, 0, 64 * PAGE, WAIT_BEFORE_WRITE_AND_WAIT_AFTER)
        assert [shared.value(n) for n in names] == before and counts(fd) == dirty and shared.writes() - writes < 10
        os.fdatasync(fd)
        assert shared.value("pages_absorbed") == before[2] + 4 and counts(fd)[2] == 0
    os.close(fd)


def test_plain_mapping_is_absorbed(folder, shared):
    fd = settled_file(folder)
    with Mapping(fd, 64 * PAGE, MAP_SHARED) as mapping:
        for turn in range(3):
            mapping.write(5 * PAGE, b"turn%d" % turn)
            writes = shared.writes()
            mapping.sync(5 * PAGE, PAGE)
            assert shared.writes() - writes < 10
            assert os.pread(fd, 5, 5 * PAGE) == b"turn%d" % turn
    assert counts(fd)[1] == 1
    os.close(fd)


def test_drain(folder, shared):
    """After a drain the lower file system has all data."""
    fd = settled_file(folder)
    for page in range(0, 64, 2):
        os.pwrite(fd, b"drained", page * PAGE)
        os.fdatasync(fd)
    assert counts(fd)[1] == 32
    shared.drain()
    clean, out_of_sync, _ = counts(fd)
    assert (clean, out_of_sync) in ((32, 0), (0, 0))
    assert shared.value("pages_out_of_sync") == 0
    drop_caches()
    below = (LOWER / folder.name / "f").read_bytes()
    assert all(below[p * PAGE:p * PAGE + 7] == b"drained" for p in range(0, 64, 2))
    os.pwrite(fd, b"rewritten", 0)
    os.fdatasync(fd)
    assert counts(fd)[1] == 1
    os.close(fd)


def test_explicit_mode(stack):
    stack.umount()
    stack.mount("mode=explicit")
    assert (stack.sysfs / "mode").read_text(encoding="ascii").strip() == "explicit"
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    for i in range(5):
        os.pwrite(fd, b"x", i * PAGE)
        os.fsync(fd)
    assert stack.value("pages_absorbed") == 0 and stack.value("syncs_lower") == 5
    with Mapping(fd, 5 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        mapping.write(0, b"dax")
        os.fsync(fd)
        assert counts(fd)[0] + counts(fd)[1] >= 1
    os.close(fd)
    run(f"mount -o remount,mode=auto {MOUNT}")
    assert "mode=auto" in run(f"grep {MOUNT} /proc/mounts")


@pytest.mark.persistence
def test_full_cache_falls_back(stack):
    """When no page can be reclaimed, a sync goes to storage. No sync waits for ever, and no data are
    lost."""
    total = stack.value("pages_total")
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, (total + 2000) * PAGE)
    os.fsync(fd)
    for start in range(0, total + 2000, 32):
        for page in range(start, start + 32):
            os.pwrite(fd, b"%08d" % page, page * PAGE)
        os.fdatasync(fd)
    assert stack.value("pages_written_back") > 0
    assert stack.value("pages_reclaimed") > 0
    for page in range(0, total + 2000, 97):
        assert os.pread(fd, 8, page * PAGE) == b"%08d" % page
    os.close(fd)
    stack.umount()
    below = os.open(LOWER / "f", os.O_RDONLY)
    for page in range(total + 2000):
        assert os.pread(below, 8, page * PAGE) == b"%08d" % page
    os.close(below)


def test_pinned_pages(stack):
    """Pages that a pipe holds can't become clean; the worker pauses before it tries again."""
    stack.umount()
    stack.cache = small_cache(4)
    run(f"forebay format --force {stack.cache}")
    stack.mount()
    pages = stack.value("pages_total") * 15 // 16
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"0" * pages * PAGE, 0)
    os.fsync(fd)
    with Mapping(fd, pages * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        pipes = store_and_hold(mapping, pages)
    assert "could not be drained" in stack.drain(check=False)   # as stored to, they may be changing: copies are below, and they stay
    held = stack.value("pages_busy")
    assert held > pages * 9 // 10      # the worker may write a page back between its store and its hold
    for page in range(pages):
        os.pwrite(fd, b"again!", page * PAGE)
    assert stack.value("pages_out_of_sync") >= held
    os.fdatasync(fd)
    with Mapping(fd, (pages + 8) * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        os.ftruncate(fd, (pages + 8) * PAGE)
        mapping.write(pages * PAGE, b"new")     # takes a page: the worker is woken
    writes = stack.writes()
    time.sleep(4)
    assert stack.writes() - writes < 60, "one round, or the end of one and another"
    assert stack.value("pages_out_of_sync") >= held
    assert sum(os.read(reader, 6) == b"again!" for reader, _ in pipes) > len(pipes) * 3 // 4
    for end in sum(pipes, ()):
        os.close(end)
    deadline = time.time() + 60
    while stack.value("pages_out_of_sync") > pages // 2 and time.time() < deadline:
        time.sleep(0.1)
    assert stack.value("pages_out_of_sync") <= pages // 2, "let go, they are written back after a while"
    os.close(fd)


def test_syncfs(folder, shared):
    fd = settled_file(folder)
    os.pwrite(fd, b"volatile", 0)
    os.pwrite(fd, b"volatile", 60 * PAGE)
    writes = shared.writes()
    syncfs(fd)
    assert shared.writes() - writes >= 3, "two pages, and a flush"
    os.close(fd)
    shared.remount()
    assert (folder / "f").read_bytes()[:8] == b"volatile"

# SPDX-License-Identifier: GPL-2.0-only
"""A file that is synced, or stored to, faster than storage takes its pages leaves room in PMem for other files."""

import contextlib
import os
import signal
import statistics
import time

import pytest
from conftest import clean_up
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, drop, info, pages, store_and_hold
from mapped import DEBUG, delay_writes, slow_device
from stack import MOUNT, PAGE, SSD, Stack, run, small_cache

CACHE_MIB = 16
STREAM_PAGES = 4 * (CACHE_MIB << 20) // PAGE
PIECE = 16      # pages that the stream changes at a time
SMALL_FILES = 3000
RESERVED = (CACHE_MIB << 20) // PAGE // 18      # a little less than the sixteenth that is kept: the cache has tables, too


@pytest.fixture(name="little")
def little_fixture(request):
    """A small cache, over a file system with room for the stream."""
    clean_up()
    stack = Stack(cache=small_cache(getattr(request, "param", CACHE_MIB)), mib=512).make()
    yield stack
    stack.destroy()
    clean_up()


def sync_pieces(fd, size=STREAM_PAGES):
    """Overwrites pieces one after the other, and syncs each; yields after each."""
    for piece in range(size // PIECE):
        os.pwrite(fd, b"s" * PIECE * PAGE, piece * PIECE * PAGE)
        os.fdatasync(fd)
        yield


def store_to_pieces(fd, size=STREAM_PAGES):
    """Stores to them in a MAP_SYNC mapping."""
    with Mapping(fd, size * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        for piece in range(size // PIECE):
            mapping.write(piece * PIECE * PAGE, b"s" * PIECE * PAGE)
            yield


@pytest.mark.parametrize("change", [sync_pieces, store_to_pieces])
def test_stream_leaves_room(little, change):
    """A stream through a file of four times the cache never takes the last sixteenth of it, and another file finds that."""
    with open(MOUNT / "small", "w+b", buffering=0) as small, open(MOUNT / "stream", "w+b", buffering=0) as stream:
        small.write(b"0" * PAGE)
        stream.write(b"0" * STREAM_PAGES * PAGE)
        os.fsync(small)
        os.fsync(stream)
        left = []
        for _ in change(stream.fileno()):
            left.append(little.value("pages_free"))
        print(f"{min(left)} pages were left at least, {RESERVED} are reserved; the stream has {pages(stream.fileno())}")
        assert min(left) >= RESERVED - PIECE
        assert little.value("pages_reclaimed") > STREAM_PAGES // 4      # the stream needed more than the cache
        full = little.value("cache_full")
        for page in range(2, RESERVED // 2):
            os.pwrite(small.fileno(), b"%08d" % page * (PAGE // 8), page * PAGE)
            os.fdatasync(small)
        assert little.value("cache_full") == full
        small.seek(2 * PAGE)
        assert small.read() == b"".join(b"%08d" % page * (PAGE // 8) for page in range(2, RESERVED // 2))


def test_mapped_pages_stay(little):
    """A stream of syncs goes through the cache: pages of another file's MAP_SYNC mapping are used meanwhile, and stay."""
    size = (CACHE_MIB << 20) // 4
    with open(MOUNT / "mapped", "w+b", buffering=0) as mapped, open(MOUNT / "stream", "w+b", buffering=0) as stream:
        mapped.write(b"0" * size)
        stream.write(b"0" * STREAM_PAGES * PAGE)
        os.fsync(mapped)
        os.fsync(stream)
        with Mapping(mapped.fileno(), size, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
            mapping.write(0, b"m" * size)
            assert pages(mapped.fileno()) == size // PAGE
            for _ in sync_pieces(stream.fileno()):
                pass
            assert little.value("pages_reclaimed") > STREAM_PAGES // 4
            assert pages(mapped.fileno()) == size // PAGE
            assert mapping.read(0, size) == b"m" * size
        # Nothing is spared for a mapping that is gone.
        for _ in sync_pieces(stream.fileno()):
            pass
        assert pages(mapped.fileno()) < size // PAGE


def test_spared_pages_are_not_written_in_vain(little):
    """Files that are mapped, and have no more than their share, leave less than an eighth of the cache. Few other pages are synced:
    the worker doesn't write the mapped ones again and again, which would make none of them free."""
    files, hot = 24, 64
    each = little.value("pages_total") // (files + 2) - 1
    with contextlib.ExitStack() as opened:
        small = opened.enter_context(open(MOUNT / "small", "w+b", buffering=0))
        small.write(b"0" * PAGE)
        os.fsync(small)
        mappings = []
        for number in range(files):
            file = opened.enter_context(open(MOUNT / f"mapped{number}", "w+b", buffering=0))
            file.write(b"0" * each * PAGE)
            os.fsync(file)
            mappings.append(opened.enter_context(Mapping(file.fileno(), each * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC)))
            mappings[-1].write(0, b"m" * each * PAGE)
        assert little.value("pages_free") < little.value("pages_total") // 8
        little.drain()
        synced = store = 0
        written, end = little.value("pages_written_back"), time.monotonic() + 8
        while time.monotonic() < end:
            if not store % 500:
                os.pwrite(small.fileno(), b"1" * PAGE, store // 500 * PAGE)
                os.fdatasync(small)
                synced += 1
            mappings[store % files].write(store // files % hot * PAGE, b"%08d" % store)
            store += 1
            time.sleep(0.0003)
        written = little.value("pages_written_back") - written
        print(f"{store} stores to {files * hot} pages, {synced} syncs: {written} pages were written back")
        assert store > files * hot
        assert written < files * hot // 2


@contextlib.contextmanager
def database_and_stream(database, size):
    """Two files of so many pages. The first one's are in PMem."""
    with open(MOUNT / "database", "w+b", buffering=0) as base, open(MOUNT / "stream", "w+b", buffering=0) as stream:
        base.write(b"0" * database * PAGE)
        stream.write(b"0" * size * PAGE)
        os.fsync(base)
        os.fsync(stream)
        for _ in sync_pieces(base.fileno(), database):
            pass
        yield base, stream


def test_a_file_within_its_share_is_not_written_back(little):
    """A database has less than its share, and all of it is out-of-sync. The worker needs clean pages for a stream through a file of four
    times the cache. It makes the stream's pages clean, and not the database's: reclaim wouldn't take these."""
    total = little.value("pages_total")
    database = total // 5 // PIECE * PIECE
    little.umount()
    little.mount("writeback_age=0")
    with database_and_stream(database, STREAM_PAGES) as (base, stream):
        had = info(base.fileno()).out_of_sync
        assert had > database - PIECE
        written = little.value("pages_written_back")
        for number, _ in enumerate(sync_pieces(stream.fileno())):
            if not number % 8:
                os.pwrite(base.fileno(), b"%08d" % number * (PAGE // 8), 0)     # it is not idle
        written = little.value("pages_written_back") - written
        found = info(base.fileno())
        print(f"of {had} pages of the database {found.out_of_sync} are still out-of-sync; {written} pages were written back")
        assert written > STREAM_PAGES // 4
        assert found.out_of_sync == had


def make_small_files(stack):
    """Thousands of files with a page each, which is in PMem."""
    stack.umount()
    run(f"forebay format --force --files {2 * SMALL_FILES} {stack.cache}")
    stack.mount()
    for again in range(2):      # the first sync after the creation goes below
        for number in range(SMALL_FILES):
            with open(MOUNT / f"small{number}", "r+b" if again else "xb", buffering=0) as small:
                small.write(b"%d" % again * PAGE)
                os.fsync(small)
    assert stack.value("files_used") == SMALL_FILES


@pytest.mark.parametrize("little", [32], indirect=True)
def test_database_beside_small_files_and_a_stream(little):
    """Beside thousands of small files, and a stream through a file of four times the cache, a database has no more than its max-min
    share: a quarter of what the small files leave. It is synced now and then, loses no page, and finds the last sixteenth for more."""
    total = little.value("pages_total")
    database, size = (total - SMALL_FILES) // 4, 4 * total // PIECE * PIECE
    make_small_files(little)
    with database_and_stream(database, size) as (base, stream):
        little.drain()
        had = pages(base.fileno())
        assert had > database - PIECE
        left = []
        for number, _ in enumerate(sync_pieces(stream.fileno(), size)):
            if not number % 4:
                left.append(pages(base.fileno()))
                os.pwrite(base.fileno(), b"%08d" % number * (PAGE // 8), number * 97 % had * PAGE)
                os.fdatasync(base)
        print(f"the database has {left[-1]} of {had} pages, at least {min(left)}; the stream {pages(stream.fileno())}")
        assert little.value("pages_reclaimed") > size // 4
        assert min(left) == had
        full = little.value("cache_full")
        for page in range(total // 64):
            os.pwrite(base.fileno(), b"m" * PAGE, (database + page) * PAGE)
            os.fdatasync(base)
        assert little.value("cache_full") == full
        assert pages(base.fileno()) >= had + total // 64


SLOW_MS, SLOW_CACHE_MIB = 320 if DEBUG else 80, 60       # slower than the stream
SECTORS = 512 * 2048


@pytest.fixture(name="slow")
def slow_fixture():
    """A small cache, over storage that takes long for each write and flush."""
    clean_up()
    stack = Stack(cache=small_cache(SLOW_CACHE_MIB), device=slow_device(SECTORS, SSD, 0), mib=512).make()
    yield stack
    stack.destroy()
    clean_up()


def store_for_ever(path, size):
    """A child's life: all pages of a MAP_SYNC mapping are stored to, again and again."""
    fd = os.open(path, os.O_RDWR)
    while True:
        for _ in store_to_pieces(fd, size):
            pass


def test_what_is_clean_becomes_free_while_a_file_is_written_back(slow):
    """The cache is full of a stream's pages, which are out-of-sync, and storage takes seconds for them. What is clean already doesn't
    wait for the end of the file's turn: the stream's stores and other files' syncs would wait with it."""
    total = slow.value("pages_total")
    size = 2 * total // PIECE * PIECE
    with open(MOUNT / "stream", "w+b", buffering=0) as stream:
        stream.write(b"0" * size * PAGE)
        os.fsync(stream)
        delay_writes(SECTORS, SSD, SLOW_MS)
        child = os.fork()
        if not child:
            store_for_ever(MOUNT / "stream", size)
        clean = []
        try:
            end = time.monotonic() + 90
            while len(clean) < 100 and time.monotonic() < end:
                if slow.value("pages_free") <= total // 14:     # the stream waits, or will soon
                    clean.append(slow.value("pages_clean"))
                time.sleep(0.05)
        finally:
            os.kill(child, signal.SIGKILL)
            delay_writes(SECTORS, SSD, 0)
            os.waitpid(child, 0)
        print(f"while less than {total // 14} pages were free, so many were clean:", *clean)
        assert len(clean) > 30 and slow.value("pages_written_back") > 1000
        assert statistics.median(clean) < 768       # three batches


def take_and_free(path):
    """A child's life: a page is synced, and given up, again and again."""
    with open(path, "w+b", buffering=0) as file:
        while True:
            os.pwrite(file.fileno(), b"o" * PAGE, 0)
            os.fdatasync(file)
            drop(file.fileno())


@pytest.mark.parametrize("little", [4], indirect=True)
def test_a_wait_in_vain_is_worth_a_page(little):
    """A file has nearly all pages, and a pipe holds these. A store to a new page waits for so long that the reserved pages are for it,
    although others free and take some all the time."""
    held = little.value("pages_total") * 31 // 32
    children, took = [], []
    with open(MOUNT / "f", "w+b", buffering=0) as file:
        file.write(b"0" * (held + 8) * PAGE)
        os.fsync(file)
        with Mapping(file.fileno(), (held + 8) * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
            pipes = store_and_hold(mapping, held)
            try:
                for number in range(2):
                    children.append(os.fork())
                    if not children[-1]:
                        take_and_free(MOUNT / f"other{number}")
                time.sleep(1)
                for page in range(held, held + 4):
                    time.sleep(0.05)    # a page becomes free, so that nothing but the wait entitles to one
                    begun = time.monotonic()
                    mapping.write(page * PAGE, b"new")
                    took.append(time.monotonic() - begun)
            finally:
                for child in children:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
    for end in sum(pipes, ()):
        os.close(end)
    print("the stores took", *(f"{seconds:.1f}" for seconds in took))
    assert max(took) > 4, "none had to wait: the test shows nothing"
    assert max(took) < 9

# SPDX-License-Identifier: GPL-2.0-only
"""A page has one primary place, and every way to it shows the same bytes; after unmount they are below.

A random sequence of changes and looks, beside a model in memory. FOREBAY_SEED repeats a run, FOREBAY_OPS makes it
longer.
"""

import errno
import fcntl
import os
import random
import struct

import pytest
from libc import (COLLAPSE_RANGE, FICLONERANGE, INSERT_RANGE, IOC_DRAIN, KEEP_SIZE, MAP_PRIVATE, MAP_SHARED,
                  MAP_SHARED_VALIDATE, MAP_SYNC, PUNCH_HOLE, ZERO_RANGE, Mapping, aligned, fallocate)
from stack import MOUNT, PAGE, drop_caches, read_below, small_cache

LIMIT = 96 * PAGE


# What a lower file system refuses; all else must work.
LACKS = {"ext4": {"do_clone_range"}, "xfs": set(), "btrfs": {"do_collapse", "do_insert"}, "f2fs": {"do_clone_range"}}


class Unsupported(Exception):
    """The file is too short, or too long, for this now."""


class Player:
    """Changes a file and a model of it in step."""

    def __init__(self, name, seed, fs):
        self.random = random.Random(seed)
        self.fs = fs
        self.path = MOUNT / name
        self.model = bytearray()
        self.log = []
        self.open(os.O_CREAT)
        other = self.random.randbytes(16 * PAGE)
        self.other = other
        with open(MOUNT / (name + ".other"), "wb") as file:
            file.write(other)
            if self.random.random() < 0.5:
                os.fsync(file.fileno())
        self.other_fd = os.open(MOUNT / (name + ".other"), os.O_RDONLY)

    def open(self, extra=0):
        """Opens the file in every way."""
        self.fd = os.open(self.path, os.O_RDWR | extra)
        self.direct = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        self.appending = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self.dsync = os.open(self.path, os.O_WRONLY | os.O_DSYNC)
        self.map = Mapping(self.fd, LIMIT, MAP_SHARED)
        self.sync_map = Mapping(self.fd, LIMIT, MAP_SHARED_VALIDATE | MAP_SYNC)

    def close(self):
        """Closes it altogether."""
        self.map.close()
        self.sync_map.close()
        for fd in (self.fd, self.direct, self.appending, self.dsync):
            os.close(fd)

    # what the model does

    def put(self, position, data):
        """Makes the model have these bytes here."""
        if position > len(self.model):
            self.model.extend(bytes(position - len(self.model)))
        self.model[position:position + len(data)] = data

    def span(self, inside=False):
        """A random range."""
        end = len(self.model) if inside else LIMIT
        position = self.random.randrange(end)
        longest = self.random.choice((100, PAGE, 5 * PAGE, 24 * PAGE))
        return position, self.random.randint(1, min(longest, end - position))

    def data(self, length):
        """Bytes that can be told from other writes' bytes."""
        return self.random.randbytes(min(length, 64)) * (length // 64) + self.random.randbytes(length % 64) \
            if length >= 64 else self.random.randbytes(length)

    # changes

    def do_write(self):
        position, length = self.span()
        data = self.data(length)
        assert os.pwrite(self.random.choice((self.fd, self.fd, self.dsync)), data, position) == length
        self.put(position, data)

    do_write_again = do_write

    def do_small_write(self):
        """Writes a few bytes over existing ones: the page stays where it is."""
        if not self.model:
            raise Unsupported
        position = self.random.randrange(len(self.model))
        data = self.data(self.random.randint(1, min(200, LIMIT - position)))
        assert os.pwrite(self.fd, data, position) == len(data)
        self.put(position, data)

    do_small_write_again = do_small_write

    def do_append(self):
        length = self.random.randint(1, 2 * PAGE)
        if len(self.model) + length > LIMIT:
            raise Unsupported
        data = self.data(length)
        assert os.write(self.appending, data) == length
        self.put(len(self.model), data)

    def do_direct_write(self):
        first = self.random.randrange(LIMIT // PAGE)
        pages = self.random.randint(1, min(8, LIMIT // PAGE - first))
        data = self.data(pages * PAGE)
        assert os.pwritev(self.direct, [aligned(data)], first * PAGE) == len(data)
        self.put(first * PAGE, data)

    def do_direct_write_from_mapping(self):
        """The buffer is a mapping of the same file."""
        pages = len(self.model) // PAGE
        if pages < 2:
            raise Unsupported
        source, target = self.random.randrange(pages), self.random.randrange(LIMIT // PAGE)
        data = bytes(self.model[source * PAGE:(source + 1) * PAGE])
        import ctypes  # pylint: disable=import-outside-toplevel
        buffer = (ctypes.c_char * PAGE).from_address(self.map.address + source * PAGE)
        fd = self.random.choice((self.direct, self.fd))
        assert os.pwritev(fd, [buffer], target * PAGE) == PAGE
        self.put(target * PAGE, data)

    def do_read_into_mapping(self):
        """The buffer of a read is a mapping of the same file."""
        pages = len(self.model) // PAGE
        if pages < 2:
            raise Unsupported
        source, target = self.random.sample(range(pages), 2)
        import ctypes  # pylint: disable=import-outside-toplevel
        mapping = self.random.choice((self.map, self.sync_map))
        buffer = (ctypes.c_char * PAGE).from_address(mapping.address + target * PAGE)
        fd = self.random.choice((self.direct, self.fd))
        assert os.preadv(fd, [buffer], source * PAGE) == PAGE
        self.put(target * PAGE, self.model[source * PAGE:(source + 1) * PAGE])

    def do_store(self):
        if not self.model:
            raise Unsupported
        position, length = self.span(inside=True)
        data = self.data(length)
        self.random.choice((self.map, self.sync_map)).write(position, data)
        self.put(position, data)

    do_store_again = do_store

    def do_truncate(self):
        size = self.random.randrange(LIMIT + 1)
        os.ftruncate(self.fd, size)
        if size < len(self.model):
            del self.model[size:]
        else:
            self.model.extend(bytes(size - len(self.model)))

    def do_punch(self):
        position, length = self.span()
        fallocate(self.fd, PUNCH_HOLE | KEEP_SIZE, position, length)
        end = min(position + length, len(self.model))
        if position < end:
            self.model[position:end] = bytes(end - position)

    def do_zero(self):
        position, length = self.span()
        keep = self.random.choice((0, KEEP_SIZE))
        fallocate(self.fd, ZERO_RANGE | keep, position, length)
        end = min(position + length, len(self.model)) if keep else position + length
        if position < end:
            self.put(position, bytes(end - position))

    def do_allocate(self):
        position, length = self.span()
        keep = self.random.choice((0, KEEP_SIZE))
        fallocate(self.fd, keep, position, length)
        if not keep and position + length > len(self.model):
            self.put(position + length, b"")

    def do_collapse(self):
        pages = (len(self.model) - 1) // PAGE
        if pages < 3:
            raise Unsupported
        first = self.random.randrange(pages - 1)
        count = self.random.randint(1, min(8, pages - 1 - first))
        fallocate(self.fd, COLLAPSE_RANGE, first * PAGE, count * PAGE)
        del self.model[first * PAGE:(first + count) * PAGE]

    def do_insert(self):
        pages, room = (len(self.model) - 1) // PAGE, (LIMIT - len(self.model)) // PAGE
        if pages < 1 or room < 1:
            raise Unsupported
        first, count = self.random.randrange(pages), self.random.randint(1, min(8, room))
        fallocate(self.fd, INSERT_RANGE, first * PAGE, count * PAGE)
        self.model[first * PAGE:first * PAGE] = bytes(count * PAGE)

    def do_copy_range(self):
        """From the other file, or from one half of this one to the other."""
        if self.random.random() < 0.5 or len(self.model) < 4 * PAGE:
            source, length = self.random.randrange(8 * PAGE), self.random.randint(1, 8 * PAGE)
            position = self.random.randrange(LIMIT - length)
            fd, data = self.other_fd, self.other
        else:
            half = len(self.model) // 2
            source, length = self.random.randrange(half), self.random.randint(1, half)
            length = min(length, half - source)
            position = self.random.randrange(half, LIMIT - length)
            fd, data = self.fd, bytes(self.model)
        done = 0
        while done < length:
            part = os.copy_file_range(fd, self.fd, length - done, source + done, position + done)
            assert part > 0
            done += part
        self.put(position, data[source:source + length])

    def do_clone_range(self):
        """Reflink."""
        pages = min(len(self.model), len(self.other)) // PAGE
        source, count = self.random.randrange(8), self.random.randint(1, 8)
        target = self.random.randrange(LIMIT // PAGE - count)
        if self.random.random() < 0.5 or pages < 8:
            fd, data = self.other_fd, self.other
        else:
            fd, data = self.fd, bytes(self.model)
            source, count, target = 0, 4, self.random.randrange(4, LIMIT // PAGE - 4)
        fcntl.ioctl(self.fd, FICLONERANGE, struct.pack("qQQQ", fd, source * PAGE, count * PAGE, target * PAGE))
        self.put(target * PAGE, data[source * PAGE:(source + count) * PAGE])

    # what changes nothing

    def do_sync(self):
        self.random.choice((os.fsync, os.fdatasync))(self.fd)

    do_sync_again = do_sync_too = do_sync

    def do_msync(self):
        if self.model:
            self.random.choice((self.map, self.sync_map)).sync(*self.span(inside=True))

    def do_disturb(self):
        """Makes pages leave their place."""
        what = self.random.randrange(8)
        if what == 0:
            drop_caches()
        elif what < 3:
            fcntl.ioctl(self.fd, IOC_DRAIN)
        elif what == 3:
            os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        elif what == 4:
            self.close()
            self.open()
        elif what == 5:
            os.sync()

    # looks

    def look(self, how=None):
        """Reads the whole file, or a part, in some way."""
        how = how or self.random.choice(("read", "map", "sync_map", "private", "direct"))
        assert os.fstat(self.fd).st_size == len(self.model)
        if not self.model:
            return
        position, length = self.span(inside=True) if self.random.random() < 0.8 else (0, len(self.model))
        if how == "read":
            got = os.pread(self.fd, length, position)
        elif how == "direct":
            position &= ~(PAGE - 1)
            length = (length + PAGE - 1) & ~(PAGE - 1)
            memory = aligned(length=length)
            count = os.preadv(self.direct, [memory], position)
            length = min(length, len(self.model) - position)
            assert count == length
            got = memory[:length]
        elif how == "private":
            with Mapping(self.fd, LIMIT, MAP_PRIVATE) as mapping:
                mapping.write(position, b"mine")
                mapping.write(position, bytes(self.model[position:position + 4]).ljust(4, b"\0"))
                got = mapping.read(position, length)
        else:
            got = getattr(self, how).read(position, length)
        self.compare(got, position, length, how)

    def compare(self, got, position, length, how):
        """Says where the first difference is."""
        expected = bytes(self.model[position:position + length])
        if got == expected:
            return
        first = next(i for i in range(length) if i >= len(got) or got[i] != expected[i])
        wrong = [p for p in range(position // PAGE, (position + length) // PAGE + 1)
                 if got[max(0, p * PAGE - position):(p + 1) * PAGE - position] !=
                 expected[max(0, p * PAGE - position):(p + 1) * PAGE - position]]
        raise AssertionError(f"by {how}: byte {position + first} (page {(position + first) // PAGE}) of {len(self.model)} "
                             f"is wrong, {got[first:first + 8].hex()} instead of {expected[first:first + 8].hex()}; "
                             f"wrong pages {wrong}; the last operations: {' '.join(self.log[-12:])}")

    def play(self, operations):
        """Plays the whole game."""
        actions = sorted(name for name in dir(self) if name.startswith("do_"))
        for _ in range(operations):
            name = self.random.choice(actions)
            before = len(self.model)
            try:
                getattr(self, name)()
            except Unsupported:
                continue
            except OSError as err:
                if err.errno in (errno.EOPNOTSUPP, errno.ENOTTY) and name in LACKS[self.fs]:
                    continue
                raise AssertionError(f"{name}: {err}; before it: {' '.join(self.log[-12:])}") from err
            self.log.append(f"{name[3:]}({before}->{len(self.model)})")
            self.look()
        for how in ("read", "map", "sync_map", "private", "direct"):
            self.look(how)


def play(stack, seed, operations):
    """Plays, then compares what is below after unmount."""
    print(f"seed {seed}")
    player = Player("file", seed, stack.fs)
    player.play(operations)
    player.close()
    os.close(player.other_fd)
    stack.umount()
    assert read_below("file") == bytes(player.model)
    stack.fsck()
    assert read_below("file") == bytes(player.model)


OPERATIONS = int(os.environ.get("FOREBAY_OPS", "800"))


def a_seed():
    """FOREBAY_SEED, or a new one."""
    return int(os.environ.get("FOREBAY_SEED") or random.SystemRandom().randrange(1 << 30))


@pytest.mark.parametrize("stack", [pytest.param({"fs": "ext4"}, marks=pytest.mark.persistence, id="ext4"),
                                   *(pytest.param({"fs": fs}, id=fs) for fs in ("xfs", "btrfs", "f2fs"))],
                         indirect=True)
def test_random_changes(stack):
    """On a cache with space for all pages."""
    play(stack, a_seed(), OPERATIONS)


@pytest.mark.parametrize("fs", ["ext4", pytest.param("xfs", marks=pytest.mark.persistence), "btrfs", "f2fs"])
def test_random_changes_full_cache(fs):
    """On a cache of 4 MiB, all of which other files need, too."""
    from conftest import clean_up  # pylint: disable=import-outside-toplevel
    from stack import Stack  # pylint: disable=import-outside-toplevel
    clean_up()
    stack = Stack(fs=fs, cache=small_cache(4)).make()
    try:
        pages = stack.value("pages_total")
        filler = os.open(MOUNT / "filler", os.O_RDWR | os.O_CREAT)
        os.ftruncate(filler, pages * PAGE)
        os.fsync(filler)

        def fill():
            for start in range(0, pages, 32):
                for page in range(start, min(start + 32, pages)):
                    os.pwrite(filler, b"f", page * PAGE)
                os.fdatasync(filler)

        seed = a_seed()
        print(f"seed {seed}")
        player = Player("file", seed, fs)
        for _ in range(4):
            fill()
            player.play(OPERATIONS // 8)
        player.close()
        os.close(player.other_fd)
        os.close(filler)
        assert stack.value("pages_reclaimed") > 0
        stack.umount()
        assert read_below("file") == bytes(player.model)
        stack.fsck()
    finally:
        clean_up()

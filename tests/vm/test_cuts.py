# SPDX-License-Identifier: GPL-2.0-only
"""The state of forebay over ext4 when the power goes right after a call. On emulated devices, a cut is a
copy."""

import ctypes
import fcntl
import mmap
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import clean_up
from libc import IOC_DRAIN, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, linkat
from stack import LOWER, MKFS, MOUNT, PAGE, create_emulated, run
from test_emu import emulated, module_fixture

LIBC = ctypes.CDLL(None, use_errno=True)
LEFT, LEFT_LOWER = Path("/mnt/left"), Path("/mnt/left-lower")
# Nothing that was not flushed survives, or all of it, or a part. In CI three.
SEEDS = range(int(os.environ.get("FOREBAY_CUTS", "6")))
COLLAPSE = 8
PATIENCE = 60           # s; the kernel reports a task that has been blocked for 90
emulated_devices = module_fixture       # for each test here, too


def cut(devices, seed=None):
    """Copies what a cut at this moment leaves of devices to others; pairs of them. By system call: a second later, which a
    slow machine may take to start a program, the worker may have brought to storage what the cut is to find in PMem alone."""
    seed = random.getrandbits(32) if seed is None else seed
    print(f"cut with seed {seed}")
    emulated.cut([[int(device.removeprefix("/dev/forebay-emu")) for device in pair] for pair in devices], seed)


class Pair:
    """forebay over ext4, and copies of what power cuts leave of it."""

    cache_mib, format_options, cache_options = 8, "", "--track"
    mib, mkfs = 32, MKFS["ext4"]

    def __init__(self):
        self.storage, self.storage_left = (create_emulated(f"--size {self.mib}M --track") for _ in range(2))
        self.cache, self.cache_left = (create_emulated(f"--size {self.cache_mib}M {self.cache_options}") for _ in range(2))
        for folder in (LOWER, MOUNT, LEFT, LEFT_LOWER):
            folder.mkdir(parents=True, exist_ok=True)
        run(self.mkfs.format(device=self.storage, mib=self.mib))
        run(f"forebay format {self.format_options} {self.cache}")
        self.mount(self.storage, self.cache, LOWER, MOUNT)

    @staticmethod
    def mount(storage, cache, lower, folder):
        """Both file systems."""
        run(f"mount {storage} {lower} && mount -t forebay -o cache={cache},allow_volatile_cache {lower} {folder}")

    def records(self):
        """The file records in use, as core/store/format.h has it."""
        fd = os.open(self.cache, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 16 * PAGE) as table:
            os.preadv(fd, [table], 2 * PAGE)
            os.close(fd)
            return [table[i:i + 64] for i in range(0, len(table), 64) if table[i] & 3]

    def record_states(self):
        """Of those: 1 live, 2 unlinked."""
        return [record[0] & 3 for record in self.records()]

    def says_exactly(self):
        """Whether one of them says so of its size."""
        return any(record[15] & 0x80 for record in self.records())

    def cut(self, seed=None):
        """Copies what a cut at this moment leaves of both devices."""
        cut([(self.storage, self.storage_left), (self.cache, self.cache_left)], seed)

    def after_cuts(self):
        """Mounts in turn what each of some cuts at this moment leaves."""
        for seed in SEEDS:
            self.cut(seed)
            self.mount(self.storage_left, self.cache_left, LEFT_LOWER, LEFT)
            yield LEFT
            run(f"umount {LEFT} && umount {LEFT_LOWER}")


def wait_for(condition):
    """Until it holds, however slow the machine is."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(name="pair")
def pair_fixture():
    """A fresh pair of file systems."""
    yield Pair()
    run(f"umount {LEFT}; umount {LEFT_LOWER}", False)
    clean_up()


def settled(pages):
    """Makes a file of so many pages, all of which are on storage; returns its descriptor."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    for page in range(pages):
        os.pwrite(fd, bytes([page + 1]) * PAGE, page * PAGE)
    os.fsync(fd)
    run(f"forebay drain {MOUNT}; sync")
    return fd


def test_page_that_the_lower_file_system_wrote_already(pair):
    """The lower file system wrote a page by itself, without a flush. A sync that takes the page must not
    regard it as durable below."""
    fd = settled(4)
    os.pwrite(fd, b"n" * PAGE, PAGE)
    below = os.open(LOWER / "f", os.O_RDONLY)
    assert LIBC.sync_file_range(below, ctypes.c_long(0), ctypes.c_long(0), 7) == 0
    os.close(below)
    os.fdatasync(fd)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"".join(
            page * PAGE for page in (b"\1", b"n", b"\3", b"\4"))
    os.close(fd)


def test_drain_right_after_the_mount(pair):
    """Recovered pages are on their way to their file's inode, behind a slow fsync: drain waits, and writes them back."""
    fd = settled(4)
    for page in range(4):
        os.pwrite(fd, b"n" * PAGE, page * PAGE)
    os.fdatasync(fd)
    os.ftruncate(fd, 3 * PAGE)      # recovery does it again, and has to make it durable
    pair.cut()
    os.close(fd)
    left, sectors = pair.storage_left, int(run(f"blockdev --getsz {pair.storage_left}"))
    run(f"dmsetup create slow --table '0 {sectors} delay {left} 0 0 {left} 0 700'; dmsetup mknodes")
    pair.mount("/dev/mapper/slow", pair.cache_left, LEFT_LOWER, LEFT)
    folder = os.open(LEFT, os.O_RDONLY)
    fcntl.ioctl(folder, IOC_DRAIN)
    os.close(folder)
    assert (LEFT_LOWER / "f").read_bytes() == b"n" * 3 * PAGE
    run(f"umount {LEFT} && umount {LEFT_LOWER} && dmsetup remove slow")


def test_append_after_a_truncation_and_syncfs(pair):
    """After a truncation, a write to a DAX page makes the file grow: syncfs must make that size durable."""
    fd = settled(1)
    os.pwrite(fd, b"a" * 3000, 0)
    os.ftruncate(fd, 3000)
    os.fdatasync(fd)
    os.pwrite(fd, b"b" * 3000, 0)
    os.fdatasync(fd)
    assert os.fstat(fd).st_size == 3000
    os.ftruncate(fd, 1000)
    os.pwrite(fd, b"c" * 500, 1000)
    assert LIBC.syncfs(fd) == 0
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"b" * 1000 + b"c" * 500
    os.close(fd)


def test_page_of_a_collapsed_file(pair):
    """After a cut no page is found that is at its new place and durable while the others are still at
    their old ones."""
    fd = settled(8)
    os.pwrite(fd, bytes([1]) * PAGE, 0)
    os.fdatasync(fd)
    assert LIBC.fallocate(fd, COLLAPSE, ctypes.c_long(PAGE), ctypes.c_long(2 * PAGE)) == 0
    os.pwrite(fd, b"n" * PAGE, 3 * PAGE)
    for left in pair.after_cuts():
        found = (left / "f").read_bytes()
        pages = [bytes([n]) * PAGE for n in (1, 4, 5, 6, 7, 8)]
        assert found in (b"".join(pages), b"".join([*pages[:3], b"n" * PAGE, *pages[4:]]))
    os.close(fd)


def test_name_that_fdatasync_left_out(pair):
    """A link, fdatasync, fsync: the name is there."""
    fd = settled(1)
    os.link(MOUNT / "f", MOUNT / "g")
    os.fdatasync(fd)
    os.fsync(fd)
    for left in pair.after_cuts():
        assert (left / "g").stat().st_size == PAGE
    os.close(fd)


def test_name_of_a_stored_to_file(pair):
    """A file that was synced before it had a name, and has a flushed store since."""
    fd = os.open(MOUNT, os.O_RDWR | os.O_TMPFILE)
    os.write(fd, bytes(2 * PAGE))
    os.fsync(fd)
    linkat(f"/proc/self/fd/{fd}", MOUNT / "g")
    with Mapping(fd, 2 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as dax:
        dax.write(PAGE, b"stored")
        for left in pair.after_cuts():
            assert (left / "g").stat().st_size == 2 * PAGE
    os.close(fd)


def test_page_that_stays_mapped(pair):
    """A page that is stored to at every sync call stays mapped, and each of the calls makes the store durable."""
    fd = settled(4)
    with Mapping(fd, 4 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        for n in range(9):
            mapping.write(PAGE + 100, bytes([n]) * 100)
            mapping.sync()
        for left in pair.after_cuts():
            assert (left / "f").read_bytes()[PAGE + 100:PAGE + 200] == bytes([8]) * 100
        mapping.write(PAGE + 100, b"n" * 100)
        os.fsync(fd)
        for left in pair.after_cuts():
            assert (left / "f").read_bytes()[PAGE + 100:PAGE + 200] == b"n" * 100
    os.close(fd)


def test_name_that_is_replaced_and_synced(pair):
    """Replaces a file by rename, as programs do to change a file as a whole."""
    fd = settled(1)
    new = os.open(MOUNT / "new", os.O_RDWR | os.O_CREAT)
    os.write(new, b"new" * 1000)
    os.fsync(new)
    os.rename(MOUNT / "new", MOUNT / "f")
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() in (b"\1" * PAGE, b"new" * 1000)
    os.fsync(new)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"new" * 1000
    os.close(new)
    os.close(fd)


def test_direct_read_into_a_mapping_that_ends_after_a_sync(pair):
    """The sync that comes after it has to know that there is something new."""
    fd = settled(4)
    run("dd if=/dev/zero bs=4096 count=1 status=none | tr '\\0' n | dd of=/dev/nvme0n1 conv=fsync status=none")
    run("dmsetup create slow --table '0 2048 linear /dev/nvme0n1 0' && dmsetup mknodes")
    source = os.open("/dev/mapper/slow", os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(fd, 4 * PAGE) as mapping:
        mapping[PAGE:PAGE + 4] = b"____"
        with ThreadPoolExecutor(1) as reader, memoryview(mapping)[PAGE:2 * PAGE] as target:
            state = Path(f"/proc/self/task/{reader.submit(threading.get_native_id).result()}/stat")
            run("dmsetup suspend slow")
            try:
                reading = reader.submit(os.preadv, source, [target], 0)
                wait_for(lambda: " D " in state.read_text(encoding="ascii"))
                os.fsync(fd)
                assert not reading.done()
            finally:
                run("dmsetup resume slow")
            assert reading.result() == PAGE
        os.fsync(fd)
        for left in pair.after_cuts():
            assert (left / "f").read_bytes()[PAGE:2 * PAGE] == b"n" * PAGE
    os.close(source)
    os.close(fd)
    run("dmsetup remove --retry slow")


def test_file_that_was_never_durable(pair):
    """A file has a page in PMem, but no sync call has promised that the file exists. Recovery must not
    report the page as lost when the file is gone after a cut."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 4 * PAGE)
    mapping = Mapping(fd, 4 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC)
    assert mapping.read(PAGE, 1) == b"\0"
    assert pair.record_states() == [2]
    for left in pair.after_cuts():
        run(f"forebay drain {left}")
    mapping.write(PAGE, b"stored")
    mapping.sync()
    assert pair.record_states() == [1]
    for left in pair.after_cuts():
        assert (left / "f").read_bytes()[PAGE:PAGE + 6] == b"stored"
    mapping.close()
    os.close(fd)


def test_file_that_syncfs_made_durable(pair):
    """syncfs makes all files durable. A page that was attached and written before survives every cut."""
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    run(f"forebay attach {MOUNT}/f")
    os.pwrite(fd, b"w" * PAGE, 0)
    assert LIBC.syncfs(fd) == 0
    assert pair.record_states() == [1]
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"w" * PAGE
    os.close(fd)


def test_deletion_that_has_begun(pair):
    """The file's record is marked unlinked before the lower file system deletes. Both a deletion that
    happens and one that doesn't leave a correct state."""
    fd = settled(4)
    os.pwrite(fd, b"n" * PAGE, 0)
    os.fdatasync(fd)
    run(f"chattr +i {LOWER}")
    with pytest.raises(PermissionError):
        os.unlink(MOUNT / "f")
    run(f"chattr -i {MOUNT}")
    assert pair.record_states() == [1]
    run(f"fsfreeze -f {LOWER}")
    deleting = threading.Thread(target=os.unlink, args=[MOUNT / "f"])
    deleting.start()
    try:
        wait_for(lambda: pair.record_states() == [2])
        assert deleting.is_alive()
        for left in pair.after_cuts():
            assert (left / "f").read_bytes()[:PAGE + 1] == b"n" * PAGE + b"\2"
    finally:
        run(f"fsfreeze -u {LOWER}")
        deleting.join()
    assert LIBC.syncfs(fd) == 0
    for left in pair.after_cuts():
        assert not (left / "f").exists()
        run(f"forebay drain {left}")
    os.close(fd)


def test_append_only_file(pair):
    """The last page and the size of an append-only file are in PMem alone. Recovery must make the lower
    file longer."""
    fd = settled(1)
    run(f"chattr +a {MOUNT}/f")
    os.fsync(fd)
    os.pwrite(fd, b"a" * 100, PAGE)
    os.fdatasync(fd)
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"\1" * PAGE + b"a" * 100
        run(f"forebay drain {left}")
    run(f"chattr -a {MOUNT}/f")
    os.close(fd)


def test_file_made_immutable_after_a_truncation(pair):
    """Recovery can't make an immutable file shorter again, and need not."""
    fd = settled(2)
    os.pwrite(fd, b"a" * PAGE, PAGE)
    os.fdatasync(fd)
    os.ftruncate(fd, 1000)
    os.pwrite(fd, b"c" * 500, 1000)
    run(f"chattr +i {MOUNT}/f && sync -f {LOWER}")
    for left in pair.after_cuts():
        assert (left / "f").read_bytes() == b"\1" * 1000 + b"c" * 500
        run(f"forebay drain {left}")
    run(f"chattr -i {MOUNT}/f")
    os.close(fd)

# SPDX-License-Identifier: GPL-2.0-only
"""Forebay refuses what it can't mount, says what to do, and changes nothing. Unprivileged callers get an
error."""

import hashlib
import os
import struct
import subprocess
from pathlib import Path

import pytest
from conftest import clean_up
from libc import IOC_DISCARD, IOC_DRAIN, IOC_INFO
from other_user import NOBODY, python_as
from stack import LOWER, MOUNT, PAGE, PMEM, SSD, SSD2, Stack, fails, run


@pytest.fixture(name="below")
def below_fixture():
    """A mounted lower file system and a formatted cache, without a forebay mount."""
    clean_up()
    stack = Stack().make()
    stack.umount()
    yield stack
    clean_up()


def mount(options, lower=LOWER):
    """Runs the mount command, which must fail."""
    return f"mount -t forebay {'-o ' + options if options else ''} {lower} {MOUNT}"


def device_sum(size=1 << 21):
    """A checksum of the beginning of the cache."""
    with open(PMEM, "rb") as file:
        return hashlib.md5(file.read(size)).hexdigest()


def patch(offset, data, device=PMEM):
    """Changes bytes of the cache device without the page cache."""
    run("sync; echo 1 > /proc/sys/vm/drop_caches")
    with open(device, "r+b", buffering=0) as file:
        file.seek(offset)
        file.write(data)
        os.fsync(file.fileno())


def test_no_cache_given(below):
    del below
    assert "no cache device given" in fails(mount(""))


def test_unknown_option(below):
    del below
    assert "nonsense" in fails(mount(f"cache={PMEM},nonsense"))
    fails(mount(f"cache={PMEM},mode=sometimes"))


def test_no_such_device(below):
    del below
    assert "cannot open cache device" in fails(mount("cache=/dev/nothing"))
    assert "no block device" in fails(mount("cache=/dev/null"))


def test_not_persistent_memory(below):
    del below
    assert "has no DAX" in fails(mount(f"cache={SSD2}"))


def test_the_ssd_as_its_own_cache(below):
    del below
    assert "in use" in fails(mount(f"cache={SSD}"))


def test_foreign_contents(below):
    del below
    run(f"mkfs.ext4 -Fq {PMEM}")
    before = device_sum()
    out = fails(mount(f"cache={PMEM}"))
    assert "forebay:" in out
    assert device_sum() == before
    fails(f"forebay format {PMEM}")
    assert device_sum() == before, "format asks before it takes a file system away"
    run(f"forebay format --force {PMEM}")


def test_not_formatted(below):
    del below
    run(f"dd if=/dev/zero of={PMEM} bs=1M count=4 conv=fsync 2>/dev/null")
    assert "run forebay format" in fails(mount(f"cache={PMEM}"))


def test_one_superblock_copy_damaged(below):
    patch(100, b"\xff" * 8)
    run("dmesg -C")
    below.mount()
    assert "rewritten from the other" in run("dmesg")
    below.umount()
    run(f"forebay check {PMEM}")


def test_both_superblock_copies_damaged(below):
    del below
    patch(100, b"\xff" * 8)
    patch(PAGE + 100, b"\xff" * 8)
    before = device_sum()
    assert "forebay check" in fails(mount(f"cache={PMEM}"))
    assert device_sum() == before


def a_record_in_use():
    """Offset of the first page record that is not free (core/store/format.h)."""
    with open(PMEM, "rb") as file:
        pages, _, table = struct.unpack("<QQQ", file.read(PAGE)[56:80])
        file.seek(table)
        records = file.read(pages * 16)
    return next(table + i for i in range(0, len(records), 16) if records[i:i + 8] != bytes(8))


def test_damaged_page_record(below):
    """The mount refuses a record that points outside the device, and changes nothing."""
    below.mount()
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 64 * PAGE)
    os.fsync(fd)
    for page in range(64):
        os.pwrite(fd, b"p%02d" % page, page * PAGE)
        os.fdatasync(fd)
    # What the device looks like now is what a power cut would leave.
    with open(PMEM, "rb") as file:
        image = bytearray(file.read())
    os.close(fd)
    below.umount()
    Path("/tmp/image").write_bytes(image)
    run(f"dd if=/tmp/image of={PMEM} bs=1M oflag=direct conv=fsync 2>/dev/null")
    patch(a_record_in_use(), b"\xff" * 16)
    before = device_sum(1 << 24)
    out = fails(mount(f"cache={PMEM}"))
    assert "damaged records; nothing was changed" in out
    assert device_sum(1 << 24) == before
    assert subprocess.run(["forebay", "check", PMEM], check=False, stdout=subprocess.DEVNULL).returncode == 4
    # Repaired, everything but that page is there.
    assert subprocess.run(["forebay", "check", "--repair", "--yes", PMEM], check=False).returncode == 1
    below.mount()
    assert below.value("pages_recovered") == 63
    data = (MOUNT / "f").read_bytes()
    assert sum(data[page * PAGE:page * PAGE + 3] == b"p%02d" % page for page in range(64)) >= 63
    below.umount()
    run(f"forebay check {PMEM}")


def test_second_mount(below):
    below.mount()
    os.makedirs("/mnt/two", exist_ok=True)
    (LOWER / "sub").mkdir()
    fails(f"mount -t forebay -o cache={PMEM} {LOWER}/sub /mnt/two")
    out = fails(f"mount -t forebay -o cache={SSD2} {LOWER} /mnt/two")
    assert "mounted with forebay already" in out
    out = fails(f"mount -t forebay -o cache={SSD2} {LOWER}/sub /mnt/two")
    assert "mounted with forebay already" in out
    run(f"mkdir -p /mnt/lower2; mkfs.ext4 -Fq {SSD2} 128M && mount {SSD2} /mnt/lower2")
    assert "in use" in fails(f"mount -t forebay -o cache={PMEM} /mnt/lower2 /mnt/two")
    run("umount /mnt/lower2")


def test_bound_elsewhere(below):
    """Another lower file system can take over an empty cache, but not one that holds data
    (test_errors.py)."""
    run(f"mkdir -p /mnt/lower2; mkfs.ext4 -Fq {SSD2} 128M && mount {SSD2} /mnt/lower2")
    run(f"mount -t forebay -o cache={PMEM} /mnt/lower2 {MOUNT}; umount {MOUNT}; umount /mnt/lower2")
    below.mount()


def test_read_only_lower(below):
    before = device_sum()
    run(f"mount -o remount,ro {LOWER}")
    assert "remount it read-write" in fails(mount(f"cache={PMEM}"))
    run(f"mount -o remount,rw {LOWER}")
    run(f"mount --bind {LOWER} {LOWER} && mount -o remount,bind,ro {LOWER}")
    assert "is on a read-only file system" in fails(mount(f"cache={PMEM}"))
    run(f"umount {LOWER}")
    assert device_sum() == before
    below.mount()


@pytest.mark.parametrize("kind", ["proc", "overlay"])
def test_lower_without_identity(below, kind):
    """Without a UUID a cache could not be brought back to its lower file system. The cache isn't written
    to."""
    del below
    before = device_sum()
    os.makedirs("/mnt/odd", exist_ok=True)
    lower = "/proc"
    if kind == "overlay":
        run("mount -t tmpfs none /mnt/odd && mkdir /mnt/odd/u /mnt/odd/w /mnt/odd/l /mnt/odd/m")
        run("mount -t overlay -o lowerdir=/mnt/odd/l,upperdir=/mnt/odd/u,workdir=/mnt/odd/w,uuid=null none /mnt/odd/m")
        lower = "/mnt/odd/m"
    assert "has no UUID" in fails(mount(f"cache={PMEM}", lower))
    assert device_sum() == before


def test_lower_without_file_handles(below):
    """overlayfs has a UUID of its own, but no handles unless it is asked for them."""
    del below
    before = device_sum()
    os.makedirs("/mnt/odd", exist_ok=True)
    run("mount -t tmpfs none /mnt/odd && mkdir /mnt/odd/u /mnt/odd/w /mnt/odd/l /mnt/odd/m")
    run("mount -t overlay -o lowerdir=/mnt/odd/l,upperdir=/mnt/odd/u,workdir=/mnt/odd/w,uuid=on,nfs_export=off none /mnt/odd/m")
    assert "has no file handles" in fails(mount(f"cache={PMEM}", "/mnt/odd/m"))
    assert device_sum() == before


def test_lower_in_memory(below):
    """tmpfs has a UUID and file handles, but data written back to it and synced are lost in a power cut."""
    del below
    before = device_sum()
    run("mkdir -p /mnt/odd && mount -t tmpfs none /mnt/odd")
    assert "keeps nothing when the power goes" in fails(mount(f"cache={PMEM}", "/mnt/odd"))
    assert device_sum() == before


def test_lower_that_folds_case(below):
    """ext4 with the casefold feature is refused, because the feature alone gives all names rules of
    their own. The same device without the feature is taken."""
    del below
    before = device_sum()
    run(f"mkdir -p /mnt/odd && mkfs.ext4 -Fq -O casefold {SSD2} 128M && mount {SSD2} /mnt/odd")
    assert "rules of its own for names" in fails(mount(f"cache={PMEM}", "/mnt/odd"))
    assert device_sum() == before
    run(f"umount /mnt/odd && mkfs.ext4 -Fq {SSD2} 128M && mount {SSD2} /mnt/odd")
    run(f"mount -t forebay -o cache={PMEM} /mnt/odd {MOUNT} && touch {MOUNT}/f && test ! -e {MOUNT}/F")


def test_no_lower_directory(below):
    del below
    before = device_sum()
    assert "cannot open the lower directory /mnt/not-there: there is no such directory" in fails(mount(f"cache={PMEM}", "/mnt/not-there"))
    assert "cannot open the lower directory /etc/passwd: it is no directory" in fails(mount(f"cache={PMEM}", "/etc/passwd"))
    assert device_sum() == before


def test_unbindable_lower_mount(below):
    del below
    run(f"mount --make-unbindable {LOWER}")
    assert "mount --make-private" in fails(mount(f"cache={PMEM}"))
    run(f"mount --make-private {LOWER}")
    run(f"mount -t forebay -o cache={PMEM} {LOWER} {MOUNT} && umount {MOUNT}")


def test_unprivileged_ioctls(below):
    below.mount()
    (MOUNT / "f").touch()
    os.chmod(MOUNT / "f", 0o666)
    code = f"""
import ctypes, errno, fcntl, os
fd = os.open({str(MOUNT / 'f')!r}, os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
def call(command, argument):
    return 0 if libc.ioctl(fd, ctypes.c_ulong(command), ctypes.c_void_p(argument)) == 0 else ctypes.get_errno()
buffer = ctypes.create_string_buffer(64)
assert call({IOC_DRAIN}, 0) == errno.EPERM
assert call({IOC_DISCARD}, 0) == errno.EPERM
assert call({IOC_INFO}, 0x1000) == errno.EFAULT
for number in range(256):
    for direction in (0, 1, 2, 3):
        command = direction << 30 | 64 << 16 | 0xfb << 8 | number
        if command not in ({IOC_DRAIN}, {IOC_DISCARD}):
            assert call(command, ctypes.addressof(buffer)) in (errno.ENOTTY, errno.EPERM, errno.EINVAL), hex(command)
root = os.open({str(MOUNT)!r}, os.O_RDONLY)
fd = root
assert call({IOC_DRAIN}, 0) == errno.EPERM
"""
    python_as(NOBODY, code, check=True)
    below.umount()


def test_too_small(below):
    run(f"dmsetup create tiny --table '0 {3 * 2048} linear {PMEM} 0'; dmsetup mknodes")
    assert "too small" in fails(mount("cache=/dev/mapper/tiny"))
    run("dmsetup remove tiny")
    del below


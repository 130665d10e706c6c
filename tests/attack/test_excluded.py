# SPDX-License-Identifier: GPL-2.0-only
"""Files that never have a page in PMem: encrypted ones (fscrypt), and those in PMem below (DAX)."""

import ctypes
import errno
import fcntl
import json
import os
import struct
from pathlib import Path

import pytest
from conftest import clean_up
from libc import IOC_ATTACH, IOC_PIN, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, error_of, info, on_range
from stack import LOWER, MOUNT, PAGE, PMEM, SSD, Stack, fails, run, small_cache

ADD_KEY, SET_POLICY = 0xC0506617, 0x800C6613
MARK = b"a secret that must not be found in PMem "


KEY = os.urandom(64)


def add_key(fd, key):
    """FS_IOC_ADD_ENCRYPTION_KEY; returns the key's identifier."""
    argument = bytearray(struct.pack("II32s I I 32x", 2, 0, b"", len(key), 0) + key)
    fcntl.ioctl(fd, ADD_KEY, argument, True)
    return bytes(argument[8:24])


@pytest.fixture(name="encrypted")
def encrypted_fixture():
    """A folder that ext4 encrypts; its key is there."""
    clean_up()
    blank()
    run("modprobe -a xts cts; true")
    for folder in (LOWER, MOUNT):
        folder.mkdir(parents=True, exist_ok=True)
    run(f"mkfs.ext4 -Fq -b 4096 -O encrypt {SSD} 256M; mount {SSD} {LOWER}; modprobe forebay")
    stack = Stack(mib=256, cache=small_cache(16))
    run(f"forebay format --force {stack.cache}")
    (LOWER / "e").mkdir()
    fd = os.open(LOWER / "e", os.O_RDONLY)
    identifier = add_key(fd, KEY)
    fcntl.ioctl(fd, SET_POLICY, struct.pack("BBBB4x16s", 2, 1, 4, 3, identifier))
    os.close(fd)
    stack.mount()
    yield stack
    os.chdir("/")
    stack.destroy()
    clean_up()


@pytest.fixture(name="dax")
def dax_fixture():
    """The cache, and beside it a device for a file system with DAX."""
    clean_up()
    blank()
    cache = small_cache(8)
    run(f"dmsetup create dax --table '0 {20 * 2048} linear {PMEM} {8 * 2048}'; dmsetup mknodes")
    for folder in (LOWER, MOUNT):
        folder.mkdir(parents=True, exist_ok=True)
    run(f"mkfs.ext4 -Fq -b 4096 /dev/mapper/dax; modprobe forebay; forebay format --force {cache}")
    yield Stack(mib=20, cache=cache, device="/dev/mapper/dax")
    os.chdir("/")
    clean_up()


def blank():
    """Clears PMem of other tests' marks."""
    run(f"dd if=/dev/zero of={PMEM} bs=1M count=16 oflag=direct status=none")


def in_pmem(stack):
    """True if the marks are in the cache device."""
    ctypes.CDLL(None).sync()
    with open(stack.cache, "rb") as device:
        return MARK in device.read()


def never_cached(stack, path, why):
    """Every call that would use PMem is refused, all others work, and no page gets to PMem."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, MARK * 400, 0)
    os.fsync(fd)
    for number in range(3):
        os.pwrite(fd, b"%d" % number + MARK, number * PAGE)
        os.fdatasync(fd)
        for page in range(20):
            os.pwrite(fd, MARK.ljust(PAGE), (8 + page) * PAGE)     # appended, and whole pages
        os.fdatasync(fd)
    assert error_of(Mapping, fd, PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) == errno.EOPNOTSUPP
    assert error_of(on_range, fd, IOC_PIN, 0, PAGE) == errno.EOPNOTSUPP
    assert error_of(on_range, fd, IOC_ATTACH, 0, PAGE) == errno.EOPNOTSUPP
    with Mapping(fd, 4 * PAGE, MAP_SHARED) as mapping:
        assert mapping.read(0, 3) == b"0" + MARK[:2]
        mapping.write(PAGE, b"mapped")
        mapping.sync()
    assert os.pread(fd, 6, PAGE) == b"mapped"
    assert info(fd).out_of_sync == info(fd).clean == 0
    assert why in run(f"forebay status {path}")
    assert why in json.loads(run(f"forebay status --json {path}"))[0]["never_cached"]
    os.truncate(fd, 3)
    os.fsync(fd)
    assert os.pread(fd, 10, 0) == b"0" + MARK[:2]
    os.close(fd)
    assert stack.value("pages_absorbed") == 0 == stack.value("pages_out_of_sync")
    assert not in_pmem(stack)


def test_encrypted(encrypted):
    never_cached(encrypted, MOUNT / "e/f", "encrypts")
    encrypted.remount()
    assert (MOUNT / "e/f").read_bytes() == b"0" + MARK[:2]
    plain = os.open(MOUNT / "plain", os.O_RDWR | os.O_CREAT)
    for _ in range(2):
        os.pwrite(plain, MARK, 0)
        os.fsync(plain)
    assert info(plain).out_of_sync == 1 and in_pmem(encrypted)
    os.close(plain)


def test_key_comes_later(encrypted):
    """The directory is looked at while its key is missing. When the key is there, all names are, too."""
    (MOUNT / "e/secret").write_bytes(MARK)
    (MOUNT / "e/sub").mkdir()
    (MOUNT / "e/sub/inside").write_bytes(MARK)
    encrypted.umount()
    run(f"umount {LOWER}")
    encrypted.mount_lower()
    encrypted.mount()
    names = os.listdir(MOUNT / "e")
    assert len(names) == 2 and "secret" not in names
    for name in names:
        os.stat(MOUNT / "e" / name)
    for name in ("secret", "sub", "sub/inside"):
        assert not (MOUNT / "e" / name).exists()
    fd = os.open(LOWER / "e", os.O_RDONLY)
    add_key(fd, KEY)
    os.close(fd)
    assert sorted(os.listdir(MOUNT / "e")) == ["secret", "sub"]
    assert (MOUNT / "e/secret").read_bytes() == (MOUNT / "e/sub/inside").read_bytes() == MARK
    for name in names:
        assert not (MOUNT / "e" / name).exists()
    os.rename(MOUNT / "e/secret", MOUNT / "e/sub/secret")
    assert (LOWER / "e/sub/secret").read_bytes() == MARK


def test_dax_mount_is_refused(dax):
    """A lower mount with -o dax is refused, and the message says what to do."""
    run(f"mount -o dax {dax.device} {LOWER}")
    assert "without -o dax" in fails(f"mount -t forebay -o cache={dax.cache} {LOWER} {MOUNT}")
    run(f"umount {LOWER}; mount {dax.device} {LOWER}")
    dax.mount()
    assert not [name for name in os.listdir(LOWER) if name != "lost+found"]
    dax.destroy()


def test_dax_file(dax):
    """One file with the DAX flag."""
    dax.mount_lower()
    (LOWER / "d").mkdir()
    run(f"xfs_io -c 'chattr +x' {LOWER}/d")
    dax.mount()
    never_cached(dax, MOUNT / "d/f", "DAX")
    plain = os.open(MOUNT / "plain", os.O_RDWR | os.O_CREAT)
    os.pwrite(plain, b"x" * PAGE, 0)
    os.fsync(plain)
    with Mapping(plain, PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        mapping.write(0, b"y")
    assert info(plain).out_of_sync == 1
    os.close(plain)
    dax.destroy()


@pytest.mark.parametrize("options", ["", "zero_freed"])
def test_zero_freed(options):
    """zero_freed clears a deleted file's pages, those freed at unmount, and those found free at mount."""
    clean_up()
    blank()
    stack = Stack(cache=small_cache(16)).make()
    stack.umount()
    stack.mount(options)
    assert options in Path("/proc/mounts").read_text(encoding="ascii")
    for name in ("kept", "deleted"):
        fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
        for _ in range(2):
            os.pwrite(fd, MARK * 400, 0)
            os.fsync(fd)
        assert info(fd).out_of_sync
        os.close(fd)
    assert in_pmem(stack)
    os.unlink(MOUNT / "deleted")
    stack.umount()
    assert in_pmem(stack) == (not options)
    if not options:
        stack.mount("zero_freed")
        assert not in_pmem(stack)
        stack.umount()
        stack.mount()
        assert "by a remount" in fails(f"mount -o remount,zero_freed {MOUNT}")
    assert (LOWER / "kept").read_bytes() == MARK * 400
    stack.destroy()
    clean_up()

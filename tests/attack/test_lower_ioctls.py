# SPDX-License-Identifier: GPL-2.0-only
"""The lower file system's ioctls: those passed on answer as below, others say ENOTTY; permissions hold."""

import ctypes
import errno
import fcntl
import os
import struct
import subprocess

import pytest
from libc import IOC_INFO, MAP_PRIVATE, Mapping
from other_user import as_user
from stack import LOWER, MOUNT, PAGE, run

FITRIM, SHUTDOWN, FIBMAP = 0xC0185879, 0x8004587D, 1
GETLABEL, SETLABEL = 0x81009431, 0x41009432
GETVERSION, SETVERSION, GETVERSION_32, SETVERSION_32 = 0x80087601, 0x40087602, 0x80047601, 0x40047602
MAP_ANONYMOUS, MAP_32BIT = 0x20, 0x40
ENABLE_VERITY, MEASURE_VERITY, READ_VERITY = 0x40806685, 0xC0046686, 0xC0286687
GET_POLICY, GET_POLICY_EX, KEY_STATUS, NONCE, PWSALT = 0x400C6615, 0xC0096616, 0xC080661A, 0x8010661B, 0x40106614
NO_LOG_FLUSH = 2
STRANGER = 1234

ASKED = {
    GETLABEL: bytes(256),
    GETVERSION: bytes(8),
    GET_POLICY: bytes(16),
    GET_POLICY_EX: struct.pack("Q24x", 24),
    KEY_STATUS: struct.pack("I4xI4x112x", 2, 0),
    NONCE: bytes(16),
    PWSALT: bytes(16),
    MEASURE_VERITY: struct.pack("HH64x", 0, 64),
    READ_VERITY: struct.pack("QQQQQ", 2, 0, 0, 0, 0),
}
REFUSED = {
    "SETVERSION": SETVERSION,
    "ENABLE_VERITY": ENABLE_VERITY,
    "SET_ENCRYPTION_POLICY": 0x800C6613,
    "ADD_ENCRYPTION_KEY": 0xC0506617,
    "EXT4_MOVE_EXT": 0xC028660F,
    "EXT4_SWAP_BOOT": 0x6611,
    "EXT4_RESIZE_FS": 0x40086610,
    "EXT4_MIGRATE": 0x6609,
    "EXT4_SETFSUUID": 0x4008662C,
    "XFS_SWAPEXT": 0xC0C0586D,
    "XFS_EXCHANGE_RANGE": 0x40285881,
    "XFS_GROWFSDATA": 0x4010586E,
    "BTRFS_SNAP_CREATE": 0x50009401,
    "GETFSMAP": 0xC0C0583B,
}


def ask(fd, command, argument):
    """The answer, or the errno."""
    buffer = bytearray(argument)
    try:
        fcntl.ioctl(fd, command, buffer)
        return bytes(buffer)
    except OSError as error:
        return error.errno


class Opened:
    """Opens files, and closes them all."""

    def __init__(self):
        self.files = []

    def __call__(self, path, flags=os.O_RDONLY):
        self.files.append(os.open(path, flags, 0o644))
        return self.files[-1]

    def close(self):
        """Closes all of them."""
        while self.files:
            os.close(self.files.pop())


@pytest.fixture(name="opened")
def opened_fixture(stack):
    """Files that are closed before the stack goes."""
    del stack
    opened = Opened()
    yield opened
    opened.close()


def new_file(opened, name):
    """A file with something in it."""
    fd = opened(MOUNT / name, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"a" * 4 * PAGE, 0)
    os.fsync(fd)
    return fd


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}, {"fs": "btrfs"}], indirect=True)
def test_answers_as_below(stack, opened):
    """Files and folders answer as below, on file systems that know a command and on those that don't."""
    del stack
    new_file(opened, "f")
    os.mkdir(MOUNT / "d")
    for name in ("f", "d", "."):
        above, below = opened(MOUNT / name), opened(LOWER / name)
        for command, argument in ASKED.items():
            assert ask(above, command, argument) == ask(below, command, argument), (name, hex(command))


class Ioctl32:
    """ioctl(2) as a 32-bit program calls it, by int 0x80: code and argument lie below 4 GiB."""

    def __init__(self):
        # push rbx; mov eax, 54; mov ebx, edi; mov ecx, esi; int 0x80; pop rbx; ret
        code = bytes.fromhex("53 b8 36000000 89fb 89f1 cd80 5b c3")
        self.memory = Mapping(-1, 2 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, 7)
        self.memory.write(0, code)
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint)
        self.call = kind(self.memory.address)

    def ask(self, fd, command, argument):
        """As ask()."""
        self.memory.write(PAGE, argument)
        result = self.call(fd, command, self.memory.address + PAGE)
        return self.memory.read(PAGE, len(argument)) if result >= 0 else -result


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}], indirect=True)
def test_32_bit(stack, opened):
    """A 32-bit program gets the same answers, and its own command for the generation; ours work, too."""
    del stack
    above, below = new_file(opened, "f"), opened(LOWER / "f")
    narrow = Ioctl32()
    for command, argument in ASKED.items():
        if command != GETVERSION:
            assert narrow.ask(above, command, argument) == ask(below, command, argument), hex(command)
    assert narrow.ask(above, GETVERSION_32, bytes(4)) == ask(below, GETVERSION, bytes(8))[:4]
    assert isinstance(narrow.ask(above, FITRIM, struct.pack("QQQ", 0, 2**63, 0)), bytes)
    assert narrow.ask(above, SETVERSION_32, bytes(4)) == errno.ENOTTY
    asked = struct.pack("IIQQII6Q", 80, 0, 0, 0, 0, 0, *[0] * 6)
    assert struct.unpack_from("IIQQ", narrow.ask(above, IOC_INFO, asked))[3] == 4 * PAGE


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}], indirect=True)
def test_trim_and_label(stack, opened):
    """fstrim and labels work for root only."""
    fd = new_file(opened, "f")
    trim = struct.pack("QQQ", 0, 2**63, 0)
    assert isinstance(ask(opened(LOWER), FITRIM, trim), bytes)
    for file in (fd, opened(MOUNT)):
        assert isinstance(ask(file, FITRIM, trim), bytes)
        assert as_user(STRANGER, lambda file=file: ask(file, FITRIM, trim)) == errno.EPERM
        assert as_user(STRANGER, lambda file=file: ask(file, SETLABEL, b"stolen" + bytes(250))) == errno.EPERM
        assert ask(file, SETLABEL, b"basin" + bytes(251)) == b"basin" + bytes(251)
        assert ask(file, GETLABEL, bytes(256)).rstrip(b"\0") == b"basin"
    assert "trimmed" in run(f"fstrim -v {MOUNT}")
    opened.close()
    run(f"mount -o remount,ro {MOUNT}")
    assert ask(opened(MOUNT), SETLABEL, b"other" + bytes(251)) == errno.EROFS
    assert isinstance(ask(opened(MOUNT), FITRIM, trim), bytes), "as on ext4: it writes no bytes"
    run(f"mount -o remount,rw {MOUNT}")
    if stack.fs == "ext4":
        assert run(f"e2label {stack.device}").strip() == "basin"


def test_attributes(stack, opened):
    """lsattr and chattr work; the generation is shown. File handles contain it, so it can't be changed."""
    del stack
    new_file(opened, "f")
    assert run(f"lsattr -v {MOUNT}/f").split()[0] == run(f"lsattr -v {LOWER}/f").split()[0] != "0"
    run(f"chattr +d {MOUNT}/f")
    assert "d" in run(f"lsattr {LOWER}/f").split()[0]


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}], indirect=True)
def test_refused(stack, opened):
    """Calls that would move or change bytes below Forebay's pages are refused, for root too."""
    del stack
    fd = new_file(opened, "f")
    for file in (fd, opened(MOUNT)):
        for name, command in REFUSED.items():
            assert ask(file, command, bytes(4096)) == errno.ENOTTY, name
    assert ask(fd, FIBMAP, bytes(4)) == errno.EINVAL


def test_verity(stack, opened):
    """A file with fs-verity, made below, is measured."""
    stack.umount()
    run(f"umount {LOWER} && tune2fs -O verity,encrypt {stack.device}")
    stack.mount_lower()
    with open(LOWER / "v", "wb") as file:
        file.write(b"v" * 10 * PAGE)
    below = opened(LOWER / "v")
    made = ask(below, ENABLE_VERITY, struct.pack("IIIIQIIQ88x", 1, 1, PAGE, 0, 0, 0, 0, 0))
    stack.mount()
    above = opened(MOUNT / "v")
    measured = ask(above, MEASURE_VERITY, ASKED[MEASURE_VERITY])
    assert measured == ask(below, MEASURE_VERITY, ASKED[MEASURE_VERITY]) and measured != errno.ENOTTY
    assert isinstance(made, int) or any(measured[4:36])
    assert ask(above, GET_POLICY_EX, ASKED[GET_POLICY_EX]) == errno.ENODATA


def test_swap(stack):
    """swapon is refused: the kernel would use the swap file's blocks without the file system."""
    del stack
    path = MOUNT / "swap"
    run(f"dd if=/dev/zero of={path} bs=1M count=4 conv=fsync status=none && chmod 600 {path} && mkswap {path}")
    done = subprocess.run(["swapon", path], check=False, text=True, capture_output=True)
    assert done.returncode and "Invalid argument" in done.stderr


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}], indirect=True)
def test_shutdown(stack, opened):
    """Shuts the lower file system down, as a power cut would; the next mount has all acknowledged bytes."""
    fd = new_file(opened, "f")
    os.pwrite(fd, b"b" * PAGE, PAGE)
    os.fdatasync(fd)
    os.fchmod(fd, 0o666)
    assert as_user(STRANGER, lambda: ask(fd, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))) == errno.EPERM
    opened(MOUNT / "g", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"c" * PAGE, 2 * PAGE)
    os.fdatasync(fd)
    if stack.fs == "xfs":
        run(f"xfs_io -x -c shutdown {MOUNT}")
    else:
        assert ask(fd, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH)) == struct.pack("I", NO_LOG_FLUSH)
    with pytest.raises(OSError):
        opened(MOUNT / "h", os.O_RDWR | os.O_CREAT)
    opened.close()
    stack.umount()
    run(f"umount {LOWER}")
    stack.mount_lower()
    stack.mount()
    with open(MOUNT / "f", "rb") as file:
        assert file.read() == b"a" * PAGE + b"b" * PAGE + b"c" * PAGE + b"a" * PAGE

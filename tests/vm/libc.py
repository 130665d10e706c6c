# SPDX-License-Identifier: GPL-2.0-only
"""System calls that Python doesn't have, and mappings of which every byte may be touched at any time."""

import collections
import contextlib
import ctypes
import fcntl
import mmap
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)

PROT_READ, PROT_WRITE = 1, 2
MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE, MAP_SYNC = 1, 2, 3, 0x80000
MS_SYNC = 4

KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE, INSERT_RANGE, UNSHARE = 1, 2, 8, 0x10, 0x20, 0x40

RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4

FICLONE, FICLONERANGE, FIDEDUPERANGE = 0x40049409, 0x4020940D, 0xC0189436
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878

IOC_DRAIN, IOC_DISCARD = 0xFB01, 0xFB02

IOC_PIN, IOC_UNPIN, IOC_ATTACH, IOC_DETACH = (0x4018FB00 | n for n in range(4, 8))
IOC_DROP, IOC_INFO = 0xC030FB08, 0xC050FB09
KEEP, RUN = 1, 1
ATTACHED, PINNED, MAPPED, LOCKED = 1, 2, 4, 8

_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
_libc.mlock.argtypes = _libc.munlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mremap.restype = ctypes.c_void_p
_libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
_libc.syscall.restype = ctypes.c_long


def checked(result):
    """The result of a call, or its error raised."""
    if result == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def syscall(number, *arguments):
    """Any system call; integers are passed as longs."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(_libc.syscall(ctypes.c_long(number), *converted))


def fallocate(fd, mode, offset, length):
    """fallocate(2)."""
    checked(_libc.fallocate(fd, mode, offset, length))


def renameat2(old, new, flags):
    """renameat2(2) of two paths."""
    checked(_libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags))


def linkat(old, new):
    """linkat(2) that follows the old name, as for /proc/self/fd."""
    checked(_libc.linkat(-100, os.fsencode(old), -100, os.fsencode(new), 0x400))


def syncfs(fd):
    """syncfs(2)."""
    checked(_libc.syncfs(fd))


class Iovec(ctypes.Structure):
    """struct iovec"""
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def vmsplice(fd, address, length):
    """vmsplice(2) of one segment of memory, without SPLICE_F_GIFT: the pipe refers to the pages."""
    return checked(_libc.vmsplice(fd, ctypes.byref(Iovec(address, length)), ctypes.c_size_t(1), 0))


def process_vm_readv(address, length):
    """Of this process: a read as of another one's memory."""
    data = ctypes.create_string_buffer(length)
    to, source = Iovec(ctypes.addressof(data), length), Iovec(address, length)
    read = checked(_libc.process_vm_readv(os.getpid(), ctypes.byref(to), ctypes.c_ulong(1), ctypes.byref(source), ctypes.c_ulong(1),
                                          ctypes.c_ulong(0)))
    return data.raw[:read]


def store_and_hold(mapping, nr):
    """Stores to so many pages of a mapping, and has pipes refer to them, 16 pages each; (reader, writer) of each pipe."""
    pipes = []
    for page in range(nr):
        mapping.write(page * mmap.PAGESIZE, b"stored")
        if page % 16 == 0:
            pipes.append(os.pipe())
        assert vmsplice(pipes[-1][1], mapping.address + page * mmap.PAGESIZE, mmap.PAGESIZE) == mmap.PAGESIZE
    return pipes


def file_handle(path):
    """The handle of a file as open_by_handle() wants it, and the mount's number."""
    buffer = ctypes.create_string_buffer(8 + 128)
    ctypes.c_uint32.from_buffer(buffer).value = 128
    mount = ctypes.c_int()
    checked(_libc.name_to_handle_at(-100, os.fsencode(path), buffer, ctypes.byref(mount), 0))
    return buffer.raw, mount.value


def open_by_handle(mount_fd, handle, flags):
    """open_by_handle_at(2)."""
    return checked(_libc.open_by_handle_at(mount_fd, ctypes.create_string_buffer(handle, len(handle)), flags))


def on_range(fd, command, offset=0, length=0, flags=0, size=24):
    """FOREBAY_IOC_PIN, _UNPIN, _ATTACH or _DETACH."""
    fcntl.ioctl(fd, command, struct.pack("IIQQ", size, flags, offset, length))


def drop(fd, offset=0, length=0):
    """FOREBAY_IOC_DROP; pages dropped, pinned, busy."""
    answer = fcntl.ioctl(fd, IOC_DROP, struct.pack("IIQQQQQ", 48, 0, offset, length, 0, 0, 0))
    return struct.unpack("IIQQQQQ", answer)[4:]


Info = collections.namedtuple("Info", "offset length attributes reserved clean out_of_sync dirty pinned busy volatile")


def info(fd, offset=0, length=0, flags=0):
    """FOREBAY_IOC_INFO."""
    answer = fcntl.ioctl(fd, IOC_INFO, struct.pack("IIQQII6Q", 80, flags, offset, length, 0, 0, *[0] * 6))
    return Info(*struct.unpack("IIQQII6Q", answer)[2:])


def pages(fd, offset=0, length=0):
    """How many pages of the range are in PMem."""
    found = info(fd, offset, length)
    return found.clean + found.out_of_sync


class Mapping:
    """A mapping, perhaps longer than its file: Python's own mmap refuses that."""

    def __init__(self, fd, length, flags=MAP_SHARED, prot=PROT_READ | PROT_WRITE, offset=0):
        self.length = length
        self.address = checked_address(_libc.mmap(None, length, prot, flags, fd, offset))

    def read(self, offset, length):
        """Bytes."""
        return ctypes.string_at(self.address + offset, length)

    def write(self, offset, data):
        """Stores."""
        ctypes.memmove(self.address + offset, data, len(data))

    def sync(self, offset=0, length=None):
        """msync(2); the offset is rounded down to its page."""
        start = offset & ~4095
        checked(_libc.msync(self.address + start, (length or self.length - start) + offset - start, MS_SYNC))

    def lock(self, offset=0, length=None):
        """mlock(2)."""
        checked(_libc.mlock(self.address + offset, length or self.length - offset))

    def unlock(self, offset=0, length=None):
        """munlock(2)."""
        checked(_libc.munlock(self.address + offset, length or self.length - offset))

    def protect(self, offset, length, prot):
        """mprotect(2)."""
        checked(_libc.mprotect(self.address + offset, length, prot))

    def unmap(self, offset, length):
        """munmap(2) of a part."""
        checked(_libc.munmap(self.address + offset, length))

    def remap(self, length):
        """mremap(2), which may move it."""
        self.address = checked_address(_libc.mremap(self.address, self.length, length, 1))
        self.length = length

    def close(self):
        """munmap(2)."""
        if self.address:
            checked(_libc.munmap(self.address, self.length))
            self.address = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


@contextlib.contextmanager
def asynchronous_read(fd, address, length):
    """A read of the file's first bytes by libaio; gives a function that waits for its end and returns the result."""
    context, event = ctypes.c_ulong(), (ctypes.c_long * 4)()
    block = ctypes.create_string_buffer(struct.pack("QIIHhIQQqQII", 0, 0, 0, 0, 0, fd, address, length, 0, 0, 0, 0))
    syscall(206, 1, ctypes.byref(context))

    def wait():
        syscall(208, context, 1, 1, event, None)
        return event[2]

    syscall(209, context, 1, ctypes.byref(ctypes.c_void_p(ctypes.addressof(block))))
    yield wait
    syscall(207, context)


def checked_address(address):
    """The result of mmap(2)."""
    if address == ctypes.c_void_p(-1).value:
        checked(-1)
    return address


def aligned(data=None, length=None):
    """Page-aligned memory for O_DIRECT, as something that os.pwritev() and os.preadv() take."""
    import mmap  # pylint: disable=import-outside-toplevel
    memory = mmap.mmap(-1, length or len(data))
    if data is not None:
        memory[:] = data
    return memory


def error_of(action, *arguments):
    """The errno of an action, 0 if the action succeeds."""
    try:
        action(*arguments)
    except OSError as error:
        return error.errno
    return 0

# SPDX-License-Identifier: GPL-2.0-only
"""Emulated devices, mapped devices and mounts by system call: a process for each would take too long for
thousands of cuts."""

import ctypes
import fcntl
import os
import struct

_CREATE = struct.Struct("=IIQQQQiI")
_PAIR = struct.Struct("=II")
CREATE, REMOVE, CUT = 0xC0306501, 0x6502, 0x40306503
TRACK = 2
MS_REMOUNT = 32

_libc = ctypes.CDLL(None, use_errno=True)
_dm = ctypes.CDLL("libdevmapper.so.1.02.1", use_errno=True)
_dm.dm_task_create.restype = ctypes.c_void_p
_DM_CREATE, _DM_REMOVE = 0, 2


def control(request, argument):
    """Asks the module by an ioctl."""
    fd = os.open("/dev/forebay-emu-control", os.O_RDWR)
    try:
        return fcntl.ioctl(fd, request, argument)
    finally:
        os.close(fd)


def create(size, flags=TRACK):
    """A device; its number."""
    want = bytearray(_CREATE.pack(_CREATE.size, flags, size, 0, 0, 0, -1, 0))
    control(CREATE, want)
    return _CREATE.unpack(want)[-1]


def path(number):
    """Its path."""
    return f"/dev/forebay-emu{number}"


def cut(pairs, seed):
    """Puts what a power cut would leave of the first device of each pair into the second."""
    packed = b"".join(_PAIR.pack(*pair) for pair in pairs)
    control(CUT, struct.pack("=IIQ", 48, len(pairs), seed) + packed.ljust(32, b"\0"))


def _dm_task(kind, name, table=None):
    task = ctypes.c_void_p(_dm.dm_task_create(kind))
    try:
        _dm.dm_task_set_name(task, name.encode())
        if table:
            sectors, target, parameters = table
            _dm.dm_task_add_target(task, ctypes.c_uint64(0), ctypes.c_uint64(sectors), target.encode(), parameters.encode())
        if not _dm.dm_task_run(task):
            raise OSError(_dm.dm_task_get_errno(task), f"device-mapper, {name}")
    finally:
        _dm.dm_task_destroy(task)
    _dm.dm_task_update_nodes()


def map_device(name, sectors, target, parameters):
    """dmsetup create; its path."""
    _dm_task(_DM_CREATE, name, (sectors, target, parameters))
    return f"/dev/mapper/{name}"


def unmap_device(name):
    """dmsetup remove."""
    _dm_task(_DM_REMOVE, name)


def mount(source, folder, kind, options="", flags=0):
    """mount(2)."""
    if _libc.mount(source.encode(), folder.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()):
        raise OSError(ctypes.get_errno(), f"mount of {source} on {folder}")


def umount(folder):
    """umount(2)."""
    if _libc.umount(folder.encode()):
        raise OSError(ctypes.get_errno(), f"umount of {folder}")
